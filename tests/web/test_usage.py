from pathlib import Path

from medamad.web.resource_usage import ResourceUsage


def test_the_usage_of_the_machine_is_plausible(tmp_path: Path) -> None:
    usage = ResourceUsage().of_machine(tmp_path)
    assert 0 <= usage["cpu"]["usage"] <= 100
    assert 1 <= usage["cpu"]["cores"] <= usage["cpu"]["threads"]
    assert 0 < usage["memory"]["used"] < usage["memory"]["total"]
    assert 0 < usage["disk"]["used"] < usage["disk"]["total"]


def test_the_uptime_is_never_negative() -> None:
    assert ResourceUsage().of_process(0.0)["uptime"] == 0
    figures = ResourceUsage().of_process(4_000_000_000)
    assert figures["uptime"] > 0
    assert figures["memory"] > 1_000_000
