"""The other collectors of the cluster: who is the primary, and a copy of its settings.

Every collector greets every other one, twice a second, with the epoch that it knows. So each learns
of a promotion, and the others get the primary's settings when these have changed.
"""

import hmac
import os
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final, Generic, TypeVar

import msgspec
from attrs import define, field
from msgspec.structs import replace
from twisted.internet.defer import Deferred, DeferredLock, fail, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.admin.protocol import Promote
from medamad.admin.server import ReportProgress
from medamad.cluster.peers import (
    GREETED,
    OUTCOMES,
    REQUESTS,
    Greeted,
    Greeting,
    Message,
    NotSent,
    PassedHit,
    PassedHits,
    Peer,
    RecentHitsWanted,
    Rejected,
    RequestsWanted,
    Unanswered,
    UncountedWanted,
)
from medamad.config.settings import ClusterSettings
from medamad.daemon.thread_pool import Pool
from medamad.domain.cluster import ClusterState, OtherCollector
from medamad.domain.errors import BadRequest, Conflict, Forbidden, Unavailable
from medamad.domain.hits import Event, Hit, Unload, View
from medamad.ingest.hit_counts import RecentHits, Uncounted
from medamad.ingest.pipeline import Pipeline
from medamad.ingest.write_queue import Stored
from medamad.storage.environment.files import sync
from medamad.storage.passed_hits import WAITS_MS, WaitingHit
from medamad.storage.request_totals import RequestSources
from medamad.storage.shared_settings import NUMBERS_OF_IMPORTS, Epoch, Role, SharedSettings
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome
from medamad.web.backend import Backend, RunQuery

GREET_S: Final = 0.5
"""How often the others are greeted."""
PASS_ON_S: Final = 1.0
"""How often hits that wait for others are passed on."""
TIDY_S: Final = 600.0
_ID_BYTES: Final = 8
_MOST_WAITING: Final = 10_000
"""How many hits wait in memory for a collector at most."""
_MOST_KEPT: Final = 200
"""How many hits that wait on disk are written or settled together."""
_IGNORED: Final = "ignored"
"""The answer to what is of a view that is ignored, as its collector alone knows."""
_TAKEN: Final = (Outcome.STORED.value, Outcome.REPEATED.value, _IGNORED)
_MESSAGES: Final = msgspec.msgpack.Decoder(Message)
_RETRY_AFTER_S: Final = 10
_UNCOUNTED: Final = msgspec.msgpack.Decoder(list[Uncounted])
_RECENT_HITS: Final = msgspec.msgpack.Decoder(RecentHits)
_HITS: Final = msgspec.msgpack.Decoder(PassedHit)
DROPPED_NAME: Final = "dropped-settings-{}.json"
"""The file with changes that were dropped, by the number of the epoch in which they were made."""


T = TypeVar("T")
R = TypeVar("R")


@define(eq=False)
class _Batches(Generic[T, R]):
    """Collects items while a batch of them is under way; the next batch has these."""

    _do: Callable[[Sequence[T]], Awaitable[Sequence[R]]]
    """Returns a result for each item of a batch."""
    _most: int
    """The greatest weight of a batch of several items."""
    _weigh: Callable[[T], int]
    _waiting: list[tuple[T, "Deferred[R]"]] = field(factory=list, init=False)
    _is_busy: bool = field(default=False, init=False)
    _log = Logger()

    def add(self, item: T) -> "Deferred[R]":
        """Return the result of an item. Fails as its batch does; with Unavailable for too many."""
        if len(self._waiting) >= _MOST_WAITING:
            return fail(Unavailable("too many hits wait for another collector", retry_after=1))
        done: Deferred[R] = Deferred()
        self._waiting.append((item, done))
        if not self._is_busy:
            self._is_busy = True
            running = Deferred.fromCoroutine(self._run())
            running.addErrback(lambda failure: self._log.failure("a batch was not sent", failure))
        return done

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch = self._next()
                try:
                    results = await self._do([item for item, _ in batch])
                    pairs = list(zip(batch, results, strict=True))
                except Exception:  # noqa: BLE001 - delivered with each item
                    for _, done in batch:
                        done.errback(Failure())
                else:
                    for (_, done), result in pairs:
                        done.callback(result)
        finally:
            self._is_busy = False

    def _next(self) -> list[tuple[T, "Deferred[R]"]]:
        weight, count = 0, 0
        for item, _ in self._waiting:
            weight += self._weigh(item)
            if count and weight > self._most:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch


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
    _pipeline: Pipeline
    _run_query: RunQuery
    _clock: Callable[[], float]
    _waited_for: frozenset[int]
    """The collectors for which hits may wait: the others, and those that were removed."""
    _sending: Mapping[int, _Batches[bytes, str]] = field(factory=dict, init=False)
    """What is passed on to each collector: encoded hits, and the answer to each."""
    _keeping: _Batches[WaitingHit, None] = field(init=False)
    _changing: DeferredLock = field(factory=DeferredLock, init=False)
    """Held while the role changes."""
    _not_taken: str = field(default="", init=False)
    """Why the primary's settings could not be stored, "" if they could."""
    _greeting: set[int] = field(factory=set, init=False)
    """The collectors that are being greeted."""
    _log = Logger()

    @classmethod
    def start(cls, backend: Backend, cluster: ClusterSettings, reactor: Any) -> "Collectors":
        """Return what speaks to the collectors that the configuration names.

        Raises Conflict if it says that this is another one than it has been.
        """
        store, state, settings = backend.store, backend.cluster, backend.settings
        if state is None:
            raise ValueError("the store is not kept for a cluster")
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
        waiting = store.hits_waiting()
        state.to_pass_on = sum(waiting.values())
        made = cls(
            store=store,
            data_dir=settings.data_dir,
            secret=cluster.secret.encode("ascii"),
            peers=peers,
            # Never stopped: a stop would wait for a collector that does not answer.
            in_threads={number: Pool.start(f"collector {number}", 2, reactor) for number in peers},
            state=state,
            role=role,
            latest=role.epoch,
            pipeline=backend.pipeline,
            run_query=backend.run_query,
            clock=backend.clock,
            waited_for=frozenset((*waiting, *peers)),
        )
        most = settings.max_body_bytes * 3 // 4
        made._sending = {
            number: _Batches(partial(made._send, number), most, len) for number in peers
        }
        made._keeping = _Batches(made._keep, _MOST_KEPT, lambda _: 1)
        made._publish()
        backend.collectors = backend.pipeline.others = made
        return made

    async def greet(self) -> None:
        """Begin to greet the others, without those that have not answered yet."""
        self._look_for_dropped()
        version = self._store.shared_settings().version
        for number in self._peers.keys() - self._greeting:
            greeting = Deferred.fromCoroutine(self._greet(number, version))
            greeting.addErrback(
                lambda failure: self._log.failure("a collector could not be greeted", failure)
            )

    async def promote(self, _request: Promote, _report: ReportProgress) -> str:
        """Become the primary, with the last settings of the former one if it can be reached.

        Returns why these are unknown, "" if they are not. Raises Conflict if this is the primary.
        """
        version = self._store.shared_settings().version
        # One of them may know of a later promotion.
        asking = [Deferred.fromCoroutine(self._greet(each, version)) for each in self._peers]
        for asked in asking:
            await asked
        former = self._latest.primary
        if self._state.is_primary:
            raise Conflict(f"collector {former} is the primary already")
        if former in self._peers:
            await self._greet(former, version)
        await self._changing.run(self._begin_epoch)
        other = self._state.others.get(former)
        if other is None or not other.failure:
            return ""
        return f"collector {former} could not be asked for its last changes: {other.failure}"

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
            asked = _MESSAGES.decode(message)
            if isinstance(asked, RequestsWanted):
                return await self._encoded_requests(asked)
            if isinstance(asked, UncountedWanted):
                return msgspec.msgpack.encode(self._uncounted_here(asked))
            if isinstance(asked, RecentHitsWanted):
                self._check_is_of_cluster(asked.cluster)
                return msgspec.msgpack.encode(self._pipeline.recent_hits(self._clock()))
            if isinstance(asked, PassedHits):
                return msgspec.msgpack.encode(await self._received(asked))
        except msgspec.MsgspecError as error:
            raise BadRequest(f"another version of medamad: {error}") from error
        return msgspec.msgpack.encode(self._greeted(asked))

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
        lag_s = self._state.lag_s(self._clock())
        return Greeted(self._role.collector, self._latest, settings, lag_s)

    async def _greet(self, number: int, version: bytes) -> None:
        other = self._state.others[number]
        self._greeting.add(number)
        try:
            message = Greeting(self._role.collector, self._latest, version)
            ask = partial(self._peers[number].ask, message, GREETED)
            greeted = await self._in_threads[number](ask)
            if greeted.collector != number:
                raise BadRequest(f"{other.url}: this is collector {greeted.collector}")
            self._check_cluster(number, greeted.epoch)
            self._learn(greeted.epoch)
            if greeted.settings is not None and greeted.epoch.primary == number:
                await self._changing.run(self._take_if_possible, greeted.epoch, greeted.settings)
        except (NotSent, BadRequest, Unavailable) as error:
            if str(error) != other.failure:
                self._log.warn(
                    "collector {number} cannot be reached: {why}", number=number, why=str(error)
                )
            other.failure, other.lag_s = str(error), 0.0
        else:
            if other.failure:
                self._log.info("collector {number} can be reached", number=number)
            other.failure, other.lag_s = "", greeted.lag_s
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

    async def _take_if_possible(self, epoch: Epoch, settings: SharedSettings) -> None:
        """Take settings, or try again with the next greeting."""
        reason = ""
        try:
            await self._take(epoch, settings)
        except Unavailable as error:
            reason = str(error)
            if reason != self._not_taken:
                self._log.warn("the primary's settings are not stored: {why}", why=reason)
        self._not_taken = reason

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
        changes = [
            each for each in own.changes_from(settings) if each["key"] not in NUMBERS_OF_IMPORTS
        ]
        if not changes:
            return
        path = self._data_dir / DROPPED_NAME.format(began)
        content = msgspec.json.format(msgspec.json.encode(changes))
        making = path.with_suffix(".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(making, flags, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        making.replace(path)
        sync(path.parent)
        self._log.error("changes that were made here are dropped: {path} has them", path=path)

    # What each has counted

    async def requests(
        self, website: int, kind: int, first_day: int | None, last_day: int | None
    ) -> list[RequestSources]:
        """Return what each of the others has counted apart. Raises Unavailable."""
        cluster = self._role.epoch.cluster
        wanted = RequestsWanted(cluster, website, kind, first_day, last_day)
        return await self._ask_all(wanted, REQUESTS)

    async def uncounted(self, website: int) -> list[list[Uncounted]]:
        """Return the hits that did not count on each of the others. Raises Unavailable."""
        return await self._ask_all(UncountedWanted(self._role.epoch.cluster, website), _UNCOUNTED)

    async def recent_hits(self) -> dict[int, RecentHits | None]:
        """Return the hits of the last day of each of the others, None of one that is silent."""
        answers = await self._ask_each(RecentHitsWanted(self._role.epoch.cluster), _RECENT_HITS)
        return {
            number: None if isinstance(answered, NotSent) else answered
            for number, answered in answers.items()
        }

    async def _ask_all(self, message: Message, decoder: msgspec.msgpack.Decoder[T]) -> list[T]:
        """Return the answers of all others. Raises Unavailable if one does not answer."""
        found: list[T] = []
        for number, answered in (await self._ask_each(message, decoder)).items():
            if isinstance(answered, NotSent):
                raise Unavailable(
                    f"collector {number} does not answer at the moment, and has a part of this",
                    retry_after=_RETRY_AFTER_S,
                ) from answered
            found.append(answered)
        return found

    async def _ask_each(
        self, message: Message, decoder: msgspec.msgpack.Decoder[T]
    ) -> dict[int, T | NotSent]:
        """Return the answer of each of the others, or why there is none."""

        async def answer(number: int) -> T | NotSent:
            if failure := self._state.others[number].failure:
                return NotSent(failure)
            try:
                ask = partial(self._peers[number].ask, message, decoder)
                return await self._in_threads[number](ask)
            except NotSent as error:
                return error

        asking = {number: Deferred.fromCoroutine(answer(number)) for number in self._peers}
        return {number: await asked for number, asked in asking.items()}

    async def _encoded_requests(self, wanted: RequestsWanted) -> bytes:
        self._check_is_of_cluster(wanted.cluster)
        bounds = wanted.first_day, wanted.last_day
        read = partial(self._store.robots.read, wanted.website, wanted.kind, *bounds)
        return await self._run_query(lambda: msgspec.msgpack.encode(read()))

    def _uncounted_here(self, wanted: UncountedWanted) -> list[Uncounted]:
        self._check_is_of_cluster(wanted.cluster)
        return self._pipeline.uncounted.of(wanted.website, self._clock())

    def _check_is_of_cluster(self, cluster: str) -> None:
        if cluster != self._role.epoch.cluster:
            raise BadRequest("this is a collector of another cluster")

    # Hits

    def take(self, view: View, visitor_name: str, stored: Stored) -> bool:
        """Pass a view on if its visitor is another collector's; return whether it is.

        A visitor whom a server names is one collector's, so that the first view of a day is known.
        While that one is down, it is this one's.
        """
        numbers = (*self._peers, self._role.collector)
        name = f"\0{view.website}\0{visitor_name}"
        number = max(numbers, key=lambda each: blake2b(f"{each}{name}".encode()).digest())
        if number == self._role.collector or self._state.others[number].failure:
            return False
        self._deliver(self._pass_on(number, view), stored)
        return True

    def offer(self, hit: Unload | Event, stored: Stored) -> None:
        """Pass a hit on to the collector that has its view, which is unknown here.

        It waits on disk for those that cannot be asked. If no other has the view, an event counts
        without it.
        """
        self._deliver(self._offer(hit), stored)

    def _deliver(self, storing: Coroutine[Any, Any, Outcome], stored: Stored) -> None:
        done = Deferred.fromCoroutine(storing)
        done.addCallbacks(stored, lambda failure: stored(failure.value))
        done.addErrback(lambda failure: self._log.failure("a hit was not answered", failure))

    async def _pass_on(self, number: int, view: View) -> Outcome:
        try:
            answer = await self._ask(number, PassedHit(token_bytes(_ID_BYTES), 0, view=view))
        except Unanswered as error:
            raise Unavailable(
                f"collector {number} has not said whether it has stored the hit: {error}",
                retry_after=1,
            ) from error
        except (NotSent, Unavailable):
            answer = ""
        if answer in _TAKEN:
            self._state.passed_on += 1
            return Outcome.STORED
        return await self._append(view)

    async def _offer(self, hit: Unload | Event) -> Outcome:
        now_ms = int(self._clock() * 1000)
        event = replace(hit, network=b"") if isinstance(hit, Event) else None
        unload = hit if isinstance(hit, Unload) else None
        waiting = WaitingHit(token_bytes(_ID_BYTES), now_ms, tuple(self._peers), unload, event)
        answers = await self._answers(waiting, self._peers)
        if any(answer in _TAKEN for answer in answers.values()):
            self._state.passed_on += 1
            self._state.strayed += 1
            return Outcome.STORED
        unasked = tuple(number for number, answer in answers.items() if not answer)
        if unasked:
            await self._keeping.add(replace(waiting, collectors=unasked))
            return Outcome.STORED
        return Outcome.NO_VIEW if isinstance(hit, Unload) else await self._append(hit)

    async def _answers(self, hit: WaitingHit, numbers: Iterable[int]) -> dict[int, str]:
        """Return what collectors have done with a hit, "" for those that have not said."""
        age_ms = max(int(self._clock() * 1000) - hit.since_ms, 0)
        passed = PassedHit(hit.id, age_ms, unload=hit.unload, event=hit.event)

        async def answer(number: int) -> str:
            if self._state.others[number].failure:
                return ""
            try:
                return await self._ask(number, passed)
            except (NotSent, Unavailable):
                return ""

        asking = {number: Deferred.fromCoroutine(answer(number)) for number in numbers}
        return {number: await answered for number, answered in asking.items()}

    async def _ask(self, number: int, hit: PassedHit) -> str:
        return await self._sending[number].add(msgspec.msgpack.encode(hit))

    async def _send(self, number: int, hits: Sequence[bytes]) -> Sequence[str]:
        """Send hits in one message; a collector that does not answer counts as down."""
        epoch, other = self._role.epoch, self._state.others[number]
        if other.failure:
            # An earlier message was not answered, while these hits waited for their turn.
            raise NotSent(other.failure)
        raw = tuple(map(msgspec.Raw, hits))
        message = PassedHits(self._role.collector, epoch.cluster, raw)
        try:
            return await self._in_threads[number](
                partial(self._peers[number].ask, message, OUTCOMES)
            )
        except NotSent as error:
            if not isinstance(error, Rejected):
                other.failure = other.failure or str(error)
            raise

    async def _keep(self, hits: Sequence[WaitingHit]) -> Sequence[None]:
        await self._store.keep_waiting(hits)
        self._state.to_pass_on += sum(len(hit.collectors) for hit in hits)
        return [None] * len(hits)

    async def _append(self, hit: Hit) -> Outcome:
        return await self._queued(hit, None)

    def _queued(self, hit: Hit, network: Hashable) -> "Deferred[Outcome]":
        """Return the outcome of a hit that is stored here."""
        done: Deferred[Outcome] = Deferred()

        def stored(outcome: Outcome | Exception) -> None:
            if isinstance(outcome, Exception):
                done.errback(outcome)
            else:
                done.callback(outcome)

        self._pipeline.queue.add(hit, stored, network)
        return done

    async def _received(self, message: PassedHits) -> list[str]:
        """Store hits of another collector, and return what has become of each."""
        self._check_is_of_cluster(message.cluster)
        now_ms = int(self._clock() * 1000)
        hits = [_HITS.decode(raw).arrived(now_ms) for raw in message.hits]
        network = ("collector", message.collector)
        storing = [
            succeed(None)
            if not isinstance(hit, View) and self._pipeline.is_ignored(hit.beacon)
            else self._queued(hit, network)
            for hit in hits
        ]
        found = []
        for stored in storing:
            try:
                outcome = await stored
                found.append(_IGNORED if outcome is None else outcome.value)
            except Unavailable:
                found.append("")
        return found

    async def pass_on_waiting(self) -> None:
        """Pass on what has waited for collectors that can be reached; give up what is too old."""
        if not self._state.to_pass_on:
            return
        # What the store cannot take now is passed on again the next time.
        with suppress(Unavailable):
            for number in self._waited_for:
                left = _MOST_KEPT
                while left >= _MOST_KEPT:
                    left = await self._pass_on_waiting_for(number)

    async def _pass_on_waiting_for(self, number: int) -> int:
        """Return how many were settled."""
        now_ms = int(self._clock() * 1000)
        hits = self._store.hits_waiting_for(number, _MOST_KEPT)
        known = [number] if number in self._peers else []
        asking = [Deferred.fromCoroutine(self._answers(hit, known)) for hit in hits]
        settled = []
        for hit, answered in zip(hits, asking, strict=True):
            answer = (await answered).get(number, Outcome.NO_VIEW.value)
            if answer or now_ms - hit.since_ms > WAITS_MS:
                settled.append((hit, answer in _TAKEN))
        if settled:
            taken = sum(is_taken for _, is_taken in settled)
            self._state.passed_on += taken
            self._state.strayed += taken
            deleted = await self._store.settle_waiting(number, settled, now_ms)
            self._state.to_pass_on -= deleted
        return len(settled)

    async def tidy(self) -> None:
        """Forget which hits came from others long ago."""
        with suppress(Unavailable):
            await self._store.forget_received(int(self._clock() * 1000))

    def _publish(self) -> None:
        """Let the rest of the daemon know who is the primary."""
        self._state.primary = self._latest.primary
        self._look_for_dropped()

    def _look_for_dropped(self) -> None:
        """Find out whether there is still a file with changes that were dropped."""
        names = sorted(self._data_dir.glob(DROPPED_NAME.format("*")))
        self._state.dropped = str(names[-1]) if names else ""
