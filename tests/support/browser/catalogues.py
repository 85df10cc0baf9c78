"""What the catalogues of the dashboard say."""

import re
from pathlib import Path
from typing import Final

import medamad

LANGUAGES: Final = ("en", "de", "fr", "es", "ja", "zh")

_CATALOGUES: Final = Path(medamad.__file__).parent / "frontend" / "dashboard" / "i18n"


def translated(language: str, key: str) -> str:
    """Return a short text of a catalogue."""
    files = (
        (_CATALOGUES / "en").glob("*.ts") if language == "en" else [_CATALOGUES / f"{language}.ts"]
    )
    source = "\n".join(file.read_text("utf-8") for file in files)
    found = re.search(rf'"{re.escape(key)}":\s*"([^"]+)"', source)
    assert found, key
    return found[1]
