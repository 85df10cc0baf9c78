from collections.abc import Sequence

import pytest
from attrs import define, field

from medamad.demo.sites import SITES
from medamad.demo.traffic import TrafficPlan, fill, hits
from medamad.domain.hits import Hit
from medamad.domain.websites import Website

PLAN = TrafficPlan(until_ms=1_790_000_000_123, days=4, views=3_000)


@define
class Recording:
    """Records the websites and hits that it is given."""

    websites: list[Website] = field(factory=list)
    hits: list[Hit] = field(factory=list)
    batches: list[int] = field(factory=list)

    async def add_website(self, hostname: str, now: int) -> Website:
        self.websites.append(Website(len(self.websites) + 5, hostname, now, now))
        return self.websites[-1]

    async def append(self, hits: Sequence[Hit]) -> None:
        self.batches.append(len(hits))
        self.hits.extend(hits)


def test_all_hits_are_stored_in_order_under_the_websites_numbers() -> None:
    store = Recording()
    filling = fill(store, PLAN)
    with pytest.raises(StopIteration) as done:
        filling.send(None)
    assert done.value.value == store.websites
    assert [website.hostname for website in store.websites] == [site.hostname for site in SITES]
    numbers = {website.hostname: website.number for website in store.websites}
    assert store.hits == list(hits(PLAN, numbers))
    assert max(store.batches) <= 2_000


def test_the_websites_are_as_old_as_their_first_hits() -> None:
    store = Recording()
    with pytest.raises(StopIteration):
        fill(store, PLAN).send(None)
    assert {website.created for website in store.websites} == {1_790_000_000 - 4 * 86_400}
