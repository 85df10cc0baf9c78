from collections import defaultdict
from random import Random

from medamad.demo.people import draw_person


def test_people_are_as_varied_as_the_privacy_page_says() -> None:
    random = Random(1)  # noqa: S311 - no secret
    people = [draw_person(random) for _ in range(20_000)]
    assert len({person.browser for person in people}) == 22
    assert len({person.place.country for person in people} - {""}) == 18
    minor_versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for person in people:
        browser = person.browser
        for name, version in ((browser.name, browser.version), (browser.os, browser.os_version)):
            minor_versions[name, version.partition(".")[0]].add(version)
    assert [found for found in minor_versions.values() if len(found) > 1] == []
