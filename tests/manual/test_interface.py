import re

import yaml

from manual.interface import DOCUMENT, METHODS, page


def test_every_operation_and_object_is_documented_and_every_link_works() -> None:
    document = yaml.load(DOCUMENT.read_text("utf-8"), yaml.CSafeLoader)
    text = page()
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                assert f"### `{method.upper()} {path}` {{ #" in text
    anchors = set(re.findall(r"\{ #([a-z0-9-]+) \}", text))
    assert {f"object-{name.lower()}" for name in document["components"]["schemas"]} <= anchors
    links = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert links
    assert links <= anchors
