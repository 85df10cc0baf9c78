"""Tables that are read, and patterns that are compiled, when something first asks for them."""

from typing import Final

from medamad.collect.agents import describe
from medamad.collect.bots import is_bot
from medamad.collect.pages import page_of
from medamad.vocabulary.countries import country_of_zone
from medamad.vocabulary.languages import locale_of

_USUAL: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
_LIBRARY: Final = "curl/8.5.0"


def load_tables() -> None:
    """Load what hits need, so that none has to wait for it. For any thread.

    It takes more than a tenth of a second, for which the first hit would hold up all others.
    """
    describe(_USUAL)
    is_bot(_LIBRARY, "strict")
    page_of("https://bücher.example/")
    country_of_zone("Europe/Berlin")
    locale_of("en-GB")
