"""Servers for the tests of the cluster: one alone, and two that are the shards of one."""

from collections.abc import Iterator

import pytest
from support.clickhouse.servers import Server, servers


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers(tmp_path_factory.mktemp("clickhouse"), 1) as (started,):
        yield started


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with servers(tmp_path_factory.mktemp("clickhouse"), 2) as (first, second):
        yield first, second
