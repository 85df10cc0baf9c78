import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
from medamad.ingest import pipeline, user_agent
from medamad.ingest.page import page_of
from medamad.lookup import countries, languages

def found():
    agents = (user_agent._parse, user_agent._patterns, user_agent._libraries)
    caches = (*agents, countries.countries_by_zone)
    return len(sys.modules), [cache.cache_info().currsize for cache in caches]

pipeline.load_tables()
before = found()
user_agent.describe("Mozilla/5.0 (iPad; CPU OS 17_1 like Mac OS X) Version/17.1 Safari/604.1")
page_of("https://münchen.example/a?utm_source=x")
countries.country_of_zone("Asia/Tokyo")
languages.locale_of("de-CH, de;q=0.9")
json.dump([before, found()], sys.stdout)
"""


def test_a_hit_loads_nothing_once_the_tables_are_loaded() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    before, after = json.loads(ran.stdout)
    assert before == after
    assert before[1] == [1, 1, 1, 1]


LEFT_FOR_LATER = {
    *("OpenSSL", "cryptography", "twisted.internet.ssl"),
    *("klein", "werkzeug", "prometheus_client", "psutil", "pyarrow"),
    *("ua_parser", "re2", "crawleruseragents", "medamad.query.reports", "medamad.transfer"),
    *("twisted.plugins", "unittest"),
}


def test_the_daemon_starts_without_what_only_later_requests_need() -> None:
    program = """
import json, sys
from medamad.cli.run import without_openssl
with without_openssl():
    from twisted.internet import reactor
    import medamad.daemon.process
from medamad.config.schema import Config
from medamad.daemon.listen import listen_endpoints
listen_endpoints(Config(), reactor)
json.dump([*sys.modules], sys.stdout)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not LEFT_FOR_LATER & set(json.loads(ran.stdout))
