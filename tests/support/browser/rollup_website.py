"""A website of whose days there are only sums, as they come from Plausible."""

from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from support.daemon import Client, Daemon, finished

HOSTNAME: Final = "summed.example"
_TABLES: Final = MappingProxyType(
    {
        # Without the duration of visits, nothing is known of them.
        "imported_visitors": """date,visitors,pageviews,bounces,visits
2025-03-01,4,9,1,5
2025-03-02,2,3,1,2
""",
        # Plausible did not keep the time on pages at first.
        "imported_pages": r"""date,hostname,page,visits,visitors,pageviews,total_time_on_page
2025-03-01,summed.example,/,5,4,9,\N
2025-03-02,summed.example,/about,2,2,2,30
2025-03-02,summed.example,/late,1,1,1,10
""",
        "imported_entry_pages": """date,entry_page,visitors,entrances,visit_duration,bounces
2025-03-01,/,4,5,600,0
2025-03-02,/about,2,2,60,1
""",
        "imported_locations": """date,country,visitors,visits,visit_duration,bounces,pageviews
2025-03-01,DE,4,5,600,1,9
2025-03-02,FR,2,2,60,0,3
""",
    }
)


@pytest.fixture
def summed_owner(new_daemon: Daemon, tmp_path: Path) -> Client:
    """The owner of the website."""
    owner = new_daemon.client()
    owner.add_website(HOSTNAME)
    files = [tmp_path / f"{name}.csv" for name in _TABLES]
    for file, table in zip(files, _TABLES.values(), strict=True):
        file.write_text(table, "utf-8")
    ran = finished("import", new_daemon.data, "--website", HOSTNAME, *map(str, files))
    assert ran.returncode == 0, ran.stderr
    return owner
