"""Storing invented visits as if they had been received when they happened."""

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from medamad.demo.sites import SITES, Site
from medamad.demo.traffic import DAY_MS, TrafficPlan, hits
from medamad.domain.hits import Hit
from medamad.domain.websites import Website

_BATCH = 2_000


class HitStore(Protocol):
    """The part of a store that `fill` needs."""

    async def add_website(self, hostname: str, now: int) -> Website:
        """Register a website at a time in Unix seconds."""

    async def append(self, hits: Sequence[Hit]) -> object:
        """Store hits in order."""


async def fill(store: HitStore, plan: TrafficPlan, sites: Sequence[Site] = SITES) -> list[Website]:
    """Register the invented websites and store their hits. Return the websites."""
    began = (plan.until_ms - plan.days * DAY_MS) // 1000
    websites = [await store.add_website(site.hostname, began) for site in sites]
    numbers = {website.hostname: website.number for website in websites}
    invented = hits(plan, numbers, sites)
    while batch := list(islice(invented, _BATCH)):
        await store.append(batch)
    return websites
