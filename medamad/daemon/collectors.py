"""The other collectors of the cluster: who is the primary, and a copy of its settings.

Every collector greets every other one, twice a second, with the epoch that it knows. So each learns
of a promotion, and the others get the primary's settings when these have changed.
"""

import hmac
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from attrs import define, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from medamad.admin.protocol import Promote
from medamad.admin.server import ReportProgress
from medamad.cluster.peers import Greeted, Greeting, NotSent, Peer
from medamad.config.settings import ClusterSettings
from medamad.daemon.thread_pool import Pool
from medamad.domain.cluster import ClusterState, OtherCollector
from medamad.domain.errors import BadRequest, Conflict, Forbidden, Unavailable
from medamad.storage.environment.files import sync
from medamad.storage.shared_settings import Epoch, Role, SharedSettings
from medamad.storage.store import Store

GREET_S: Final = 0.5
"""How often the others are greeted."""
DROPPED_NAME: Final = "dropped-settings-{}.json"
"""The file with changes that were dropped, by the number of the epoch in which they were made."""


@define(eq=False, kw_only=True)
class Collectors:
    """Speaks to the other collectors. Used in the reactor's thread."""

    _store: Store
    _data_dir: Path
    _secret: bytes
    _peers: Mapping[int, Peer]
    _in_threads: Mapping[int, Pool]
    _state: ClusterState
    _role: Role
    _latest: Epoch
    """The latest epoch that is known of; its primary's settings may not be here yet."""
    _changing: DeferredLock = field(factory=DeferredLock, init=False)
    """Held while the role changes."""
    _greeting: set[int] = field(factory=set, init=False)
    """The collectors that are being greeted."""
    _log = Logger()

    @classmethod
    def start(
        cls,
        store: Store,
        cluster: ClusterSettings,
        state: ClusterState,
        data_dir: Path,
        reactor: Any,
    ) -> "Collectors":
        """Return what speaks to the collectors that the configuration names.

        Raises Conflict if it says that this is another one than it has been.
        """
        role = store.role(cluster.collector)
        if role.collector != cluster.collector:
            raise Conflict(
                f"cluster.collector: this data directory has joined as {role.collector}, and cannot"
                f" go on as {cluster.collector}"
            )
        others = {
            number: url for number, url in cluster.collectors.items() if number != role.collector
        }
        peers = {
            number: Peer(number=number, url=url, secret=cluster.secret, ca_file=cluster.ca_file)
            for number, url in others.items()
        }
        state.others = {number: OtherCollector(url) for number, url in others.items()}
        made = cls(
            store=store,
            data_dir=data_dir,
            secret=cluster.secret.encode("ascii"),
            peers=peers,
            # Never stopped: a stop would wait for a collector that does not answer.
            in_threads={number: Pool.start(f"collector {number}", 2, reactor) for number in peers},
            state=state,
            role=role,
            latest=role.epoch,
        )
        made._publish()
        return made

    async def greet(self) -> None:
        """Begin to greet the others, without those that have not answered yet."""
        self._look_for_dropped()
        for number in self._peers.keys() - self._greeting:
            greeting = Deferred.fromCoroutine(self._greet(number))
            greeting.addErrback(
                lambda failure: self._log.failure("a collector could not be greeted", failure)
            )

    async def promote(self, _request: Promote, _report: ReportProgress) -> str:
        """Become the primary, with the last settings of the former one if it can be reached.

        Returns why these are unknown, "" if they are not. Raises Conflict if this is the primary.
        """
        former = self._latest.primary
        if self._state.is_primary:
            raise Conflict(f"collector {former} is the primary already")
        if former in self._peers:
            await self._greet(former)
        await self._changing.run(self._begin_epoch)
        other = self._state.others.get(former)
        return "" if other is None else other.failure

    async def _begin_epoch(self) -> None:
        role = Role(self._role.collector, self._latest)
        self._role = await self._store.begin_epoch(role)
        self._latest = self._role.epoch
        self._publish()
        self._log.warn("this is the primary now, collector {number}", number=role.collector)

    async def answer(self, secret: bytes, message: bytes) -> bytes:
        """Return the answer to a message. Raises Forbidden for a wrong secret, and BadRequest."""
        if not hmac.compare_digest(secret, self._secret):
            raise Forbidden("this is for collectors that have the secret of cluster.secret_file")
        try:
            greeting = msgspec.msgpack.decode(message, type=Greeting)
        except msgspec.MsgspecError as error:
            raise BadRequest(f"another version of medamad: {error}") from error
        return msgspec.msgpack.encode(self._greeted(greeting))

    def _greeted(self, greeting: Greeting) -> Greeted:
        if greeting.collector == self._role.collector:
            raise BadRequest(
                f"cluster.collector: {greeting.collector} is the number of both collectors"
            )
        if greeting.epoch.cluster:
            self._check_cluster(greeting.collector, greeting.epoch)
            self._learn(greeting.epoch)
        settings = None
        if self._state.is_primary:
            settings = self._store.shared_settings()
            if settings.version == greeting.version:
                settings = None
        return Greeted(self._role.collector, self._latest, settings)

    async def _greet(self, number: int) -> None:
        other = self._state.others[number]
        self._greeting.add(number)
        try:
            version = self._store.shared_settings().version
            message = Greeting(self._role.collector, self._latest, version)
            ask = partial(self._peers[number].ask, message, Greeted)
            greeted = await self._in_threads[number](ask)
            if greeted.collector != number:
                raise BadRequest(f"{other.url}: this is collector {greeted.collector}")
            self._check_cluster(number, greeted.epoch)
            self._learn(greeted.epoch)
            if greeted.settings is not None and greeted.epoch.primary == number:
                await self._changing.run(self._take, greeted.epoch, greeted.settings)
        except (NotSent, BadRequest, Unavailable) as error:
            if str(error) != other.failure:
                self._log.warn(
                    "collector {number} cannot be reached: {why}", number=number, why=str(error)
                )
            other.failure = str(error)
        else:
            if other.failure:
                self._log.info("collector {number} can be reached", number=number)
            other.failure = ""
        finally:
            self._greeting.discard(number)

    def _check_cluster(self, number: int, epoch: Epoch) -> None:
        """Raise BadRequest if a collector is of another cluster."""
        if epoch.cluster != self._role.epoch.cluster:
            raise BadRequest(
                f"collector {number} has not joined the cluster of this one: run medamad cluster"
                " join with the empty data directory of one of them"
            )

    def _learn(self, epoch: Epoch) -> None:
        """Take note of an epoch; the primary of an earlier one then makes no more changes."""
        if epoch.rank > self._latest.rank:
            self._log.warn("collector {number} is the primary now", number=epoch.primary)
            self._latest = epoch
            self._publish()

    async def _take(self, epoch: Epoch, settings: SharedSettings) -> None:
        """Take the settings of the primary of an epoch, unless a later one has begun."""
        before = self._role
        if epoch.rank < self._latest.rank or epoch.primary == before.collector:
            return
        role = Role(before.collector, epoch)
        keep = partial(self._keep_dropped, settings, role, before)
        await self._store.take_shared(settings, role, keep)
        self._role = role
        self._publish()

    def _keep_dropped(
        self, settings: SharedSettings, role: Role, before: Role, own: SharedSettings
    ) -> None:
        """Write what was changed here, and not known when the next epoch began, to a file.

        Runs in the writer's thread.
        """
        began = before.epoch.number
        known = role.epoch.begun_with[began - 1 : began]
        if not before.is_primary or own.digest in known:
            return
        path = self._data_dir / DROPPED_NAME.format(began)
        changes = msgspec.json.format(msgspec.json.encode(list(own.changes_from(settings))))
        making = path.with_suffix(".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(making, flags, 0o600), "wb") as file:
            file.write(changes)
            file.flush()
            os.fsync(file.fileno())
        making.replace(path)
        sync(path.parent)
        self._log.error("changes that were made here are dropped: {path} has them", path=path)

    def _publish(self) -> None:
        """Let the rest of the daemon know who is the primary."""
        self._state.primary = self._latest.primary
        self._look_for_dropped()

    def _look_for_dropped(self) -> None:
        """Find out whether there is still a file with changes that were dropped."""
        names = sorted(self._data_dir.glob(DROPPED_NAME.format("*")))
        self._state.dropped = str(names[-1]) if names else ""
