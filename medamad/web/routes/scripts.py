"""The tracker's scripts: one for each set of features, and the one selected in the settings."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

from attrs import define, field

from medamad.build import GENERATED
from medamad.domain.accounts import SCRIPT_TYPES, Settings
from medamad.domain.errors import NotFound
from medamad.web.assets import Asset, files_below, make_asset, read_asset
from medamad.web.auth import Access
from medamad.web.dispatch import Call, Routes
from medamad.web.responses import NO_SNIFFING, NOT_FOUND, Headers, Response
from medamad.web.settings import EVENT_NAME

SCRIPT: Final = "script.js"
FIRST_SEGMENTS: Final = (SCRIPT, "scripts")
"""The first segments of the paths in this module."""

_DEFAULT: Final = SCRIPT_TYPES[0]
_FOLDER: Final = GENERATED / "frontend" / "scripts"
_SUFFIX: Final = ".js"
_PATH: Final = f"{EVENT_NAME}/".encode("ascii")
"""The path in a script that it sends hits to, which occurs nowhere else in it."""
_NAMED: Final = "named/"
"""The folder of the same scripts for `/scripts/`, where the API is one level up."""

_HEADERS: Final[Headers] = (
    (b"Cache-Control", b"public, max-age=3600"),
    NO_SNIFFING,
    (b"Access-Control-Allow-Origin", b"*"),
    (b"Cross-Origin-Resource-Policy", b"cross-origin"),
)


@cache
def read_scripts() -> Mapping[str, Asset]:
    """Return every script by the name of its file."""
    return {name: read_asset(file, _HEADERS) for name, file in files_below(_FOLDER).items()}


def file_name(features: Collection[str]) -> str:
    """Return the file name of a set of features."""
    selected = [name for name in SCRIPT_TYPES if name in features and name != _DEFAULT]
    return (".".join(selected) or _DEFAULT) + _SUFFIX


@define(eq=False)
class Scripts:
    """The scripts, with the configured path for hits."""

    _event_name: str = EVENT_NAME
    _renamed: dict[str, Asset] = field(factory=dict)

    def respond(self, call: Call, name: str) -> Response:
        """Return a script by the name of its file."""
        event_name = call.backend.settings.event_name
        script = read_scripts()[name]
        if event_name == EVENT_NAME:
            return script(call)
        if event_name != self._event_name:
            self._event_name, self._renamed = event_name, {}
        if name not in self._renamed:
            content = script.content.replace(_PATH, f"{event_name}/".encode("ascii"))
            self._renamed[name] = make_asset(content, script.content_type, _HEADERS)
        return self._renamed[name](call)

    def selected(self, call: Call) -> Response:
        """Return the script with the features selected in the settings."""
        account = call.backend.store.account.read()
        settings = Settings() if account is None else account.settings
        return self.respond(call, file_name(settings.script_type))

    def named(self, call: Call, name: str) -> Response:
        """Return the script named by the path: features joined by dots, and the suffix."""
        features = set(name.removesuffix(_SUFFIX).split("."))
        if not name.endswith(_SUFFIX) or not features <= set(SCRIPT_TYPES):
            raise NotFound(NOT_FOUND)
        return self.respond(call, _NAMED + file_name(features))


def add_to(routes: Routes) -> None:
    """Add the scripts. Raises FileNotFoundError if the package was built without them."""
    read_scripts()
    scripts = Scripts()
    routes.add("GET", f"/{SCRIPT}", scripts.selected, Access.SCRIPT)
    routes.add("GET", "/scripts/<name>", scripts.named, Access.SCRIPT)
