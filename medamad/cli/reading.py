"""What commands read a website's hits from: the store, or the cluster that they are in."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from medamad.config.schema import Config
from medamad.config.settings import cluster_settings
from medamad.domain.errors import Unavailable
from medamad.domain.websites import Website
from medamad.lookup.referrers import Sources
from medamad.query.embedded.reader import EmbeddedReader
from medamad.query.exclusions import rules_of
from medamad.query.reader import Reader
from medamad.query.request import Cancellation
from medamad.storage.offline import StoreReader

_RETRY_AFTER_S = 10


@contextmanager
def reader_of(
    config: Config, store: StoreReader, website: Website, sources: Sources
) -> Iterator[Reader]:
    """Return a reader of a website's hits.

    Raises ConfigError; Conflict if they are in a cluster that the configuration does not name; and
    Unavailable if that does not answer.
    """
    cluster, rules = cluster_settings(config, os.environ), rules_of(store.goals(website))
    if cluster is None:
        store.check_is_whole()
        yield EmbeddedReader(store.sound_snapshot(website), sources, Cancellation(), rules)
        return
    # Only with a cluster.
    from medamad.clickhouse.client import ClickHouseError  # noqa: PLC0415
    from medamad.daemon.shipping import client_of  # noqa: PLC0415
    from medamad.query.clickhouse.engine import ClickHouseEngine  # noqa: PLC0415

    client = client_of(cluster)
    try:
        engine = ClickHouseEngine(client, hidden_batches=store.hidden_batches)
        yield engine.reader(website.number, sources, Cancellation(), rules)
    except ClickHouseError as error:
        raise Unavailable(str(error), retry_after=_RETRY_AFTER_S) from error
    finally:
        client.close()
