import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.daemon import finished, running
from support.transfer.day_files import HOST, Plausible

WAITS = "but not until the daemon has run for 24 more hours, as the clock is not trusted yet"


def files(folder: Path) -> list[str]:
    """Return 4 old views with 2 events, and 3 recent views with an event."""
    now = datetime.now(UTC) - timedelta(minutes=5)
    times = [*(datetime(2024, 1, day, tzinfo=UTC) for day in range(1, 5)), now, now, now]
    views = ["store,view,time,path,first_today,first_of_page"]
    views += [
        f"feed,{number},{moment.isoformat()},/,true,true" for number, moment in enumerate(times, 1)
    ]
    events = ["store,event,view,time,name,value"]
    for number, place in ((11, 0), (12, 1), (13, 5)):
        moment = times[place].isoformat()
        events += [f"feed,{number},{place + 1},{moment},{name},x" for name in ("plan", "size")]
    paths = [folder / "views.csv", folder / "events.csv"]
    for path, lines in zip(paths, (views, events), strict=True):
        path.write_text("\n".join(lines) + "\n", "utf-8")
    return list(map(str, paths))


@pytest.mark.daemon
def test_what_retention_would_remove_is_reported(tmp_path: Path) -> None:
    kept = f'[retention]\nraw_days = 30\n[retention.websites."{HOST}"]\nafter = "nothing"\n'
    (tmp_path / "some").mkdir()
    given = files(tmp_path / "some")
    with running(tmp_path / "there", configuration=kept) as daemon:
        client = daemon.client()
        for hostname in (HOST, "other.example"):
            client.add_website(hostname)
        taking = ("import", daemon.data, *given, "--website", "other.example")
        planned = json.loads(finished(*taking, "--dry-run", "--json").stdout)
        assert (planned["views"], planned["past_views"], planned["past_events"]) == (7, 4, 2)
        for more in (("--dry-run",), ()):
            output = finished(*taking, *more).stdout
            assert "[retention] removes what is from before 20" in output
            assert f"{WAITS}: 4 views and 2 events; daily totals remain\n" in output
        export = str(Plausible().zip(tmp_path / "export.zip"))
        days = ("import", daemon.data, export, "--website")
        output = finished(*days, HOST, "--dry-run").stdout
        assert f"{WAITS}: 6 days; nothing of them remains\n" in output
        # Of days that were added up, nothing is missing where sums are kept.
        output = finished(*days, "other.example", "--dry-run").stdout
        assert "6 days, with daily totals only" in output
        assert "[retention]" not in output
