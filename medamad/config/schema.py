"""The configuration: its keys, defaults and ranges, and how a file is read."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, get_args
from zoneinfo import ZoneInfo

import msgspec
from attrs import evolve, field, frozen
from msgspec import Meta, Struct

from medamad.config.values import (
    BasePath,
    ClusterName,
    DatabaseName,
    Endpoints,
    EventName,
    Hostname,
    MailAddress,
    MailHost,
    MapSize,
    Network,
    Origin,
    PathText,
    Proxy,
    PublicUrl,
    ScriptName,
    ServerUrl,
    Size,
    UserName,
    endpoint_text,
    read_value,
)
from medamad.domain.hits import BotRule, HostingRule, OriginRule
from medamad.mail.settings import TLS_CHOICES, Tls
from medamad.storage.settings import LEAST_KEPT_HOURS, After
from medamad.web.settings import ProxyHeader

LogFormat: TypeAlias = Literal["text", "json"]
Unique: TypeAlias = Literal["cache", "none"]
Preset: TypeAlias = Literal["", "exempt"]
LeastLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

EXIT_STATUS: Final = 78
"""The exit status for an invalid configuration (EX_CONFIG of sysexits.h)."""

TOO_DEEP: Final = "arrays or tables are nested too deeply"
INSTALLED: Final = Path(__file__).parents[1]
"""The package: what a ConfigError names if a shipped file is at fault."""

EXEMPT_DAYS: Final = 750
"""For how many days the preset "exempt" keeps views at most: the shortest 25 months have 758, and
views of a day are removed when it has ended, or a day later while the clock is in doubt."""
_PRESETS: Final[Mapping[str, Mapping[str, Mapping[str, object]]]] = {
    "exempt": {"events": {"respect_gpc": True}, "retention": {"raw_days": EXEMPT_DAYS}},
}
"""What a preset sets, by section, where the file does not."""
_CHOICES: Final = {
    "server.proxy_header": get_args(ProxyHeader),
    "events.bots": get_args(BotRule),
    "events.hosting": get_args(HostingRule),
    "events.origins": get_args(OriginRule),
    "events.unique": get_args(Unique),
    "privacy.preset": tuple(name or '""' for name in get_args(Preset)),
    "retention.after": get_args(After),
    "retention.websites[...].after": get_args(After),
    "mail.tls": TLS_CHOICES,
    "log.format": get_args(LogFormat),
    "log.level": get_args(LeastLevel),
}
_WEBSITES: Final = "websites"
_OF_WEBSITE: Final = f"{_WEBSITES}[...]"
_OF_COLLECTOR: Final = "collectors[...]"
_UNKNOWN_KEY: Final = re.compile(r"Object contains unknown field `(?P<key>.*)`\Z", re.DOTALL)


class ConfigError(Exception):
    """A file of the configuration is invalid. `key` is "" if no key is at fault.

    `others` are further errors in the same file.
    """

    def __init__(
        self, file: Path, key: str, reason: str, others: "Sequence[ConfigError]" = ()
    ) -> None:
        super().__init__(": ".join(part for part in (str(file), key, reason) if part))
        self.file = file
        self.key = key
        self.reason = reason
        self.others = others


def raise_all(errors: Sequence[ConfigError]) -> None:
    """Raise the first of the errors, if there are any, with the others."""
    if errors:
        first, *others = errors
        raise ConfigError(first.file, first.key, first.reason, others)


_Count = Annotated[int, Meta(ge=1, le=100_000_000)]
_Allowance = Annotated[int, Meta(ge=0, le=100_000_000)]
_Days = Annotated[int, Meta(ge=0, le=36_500)]


class ServerSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[server]: where the daemon listens and whom it trusts."""

    listen: Endpoints = Endpoints(("tcp:8080:interface=127.0.0.1",))
    data_dir: PathText = PathText("")
    demo: bool = False
    base_path: BasePath = BasePath("")
    public_url: PublicUrl = PublicUrl("")
    hostnames: tuple[Hostname, ...] = ()
    cors_origins: tuple[Origin, ...] = ()
    trusted_proxies: tuple[Proxy, ...] = ()
    proxy_header: ProxyHeader = "X-Forwarded-For"
    metrics_from: tuple[Proxy, ...] = (Proxy("127.0.0.1"), Proxy("::1"))
    script_name: ScriptName = ScriptName("script.js")
    event_name: EventName = EventName("event")


class StoreSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[store]: how hits are stored."""

    map_size: MapSize = MapSize(64 << 30)
    commit_interval_ms: Annotated[int, Meta(ge=0, le=1_000)] = 10
    commit_max_hits: Annotated[int, Meta(ge=1, le=10_000)] = 500
    min_free_disk: Size = Size(512 << 20)


class EventsSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[events]: which hits count, and as what."""

    timezone: ZoneInfo = ZoneInfo("UTC")
    bots: BotRule = "declared"
    origins: OriginRule = "website"
    respect_gpc: bool = False
    referrers: PathText = PathText("")
    spam: PathText = PathText("")
    blocked: PathText = PathText("")
    robots: PathText = PathText("")
    hosting_networks: PathText = PathText("")
    hosting_systems: PathText = PathText("")
    hosting: HostingRule = "count"
    visits: bool = True
    visit_timeout: Annotated[int, Meta(ge=1, le=240)] = 30
    unique: Unique = "cache"
    returning: bool = False

    def __post_init__(self) -> None:
        if self.returning and not self.visits:
            raise ValueError("returning needs visits = true")
        if self.unique == "none" and not self.visits:
            raise ValueError('unique = "none" needs visits = true')
        if self.unique == "none" and self.returning:
            raise ValueError('unique = "none" and returning = true contradict each other')


class LimitsSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[limits]: bounds of what outsiders can make grow."""

    hits_per_minute: _Allowance = 6_000
    max_body_bytes: Annotated[int, Meta(ge=1_024, le=16 << 20)] = 16_384
    max_connections: _Count = 10_000
    max_connections_per_network: _Count = 1_000
    max_waiting_hits: _Count = 20_000
    live_visits: _Count = 200_000
    new_paths: _Count = 10_000
    new_referrers: _Count = 2_000
    new_utm: _Count = 1_000
    new_property_names: _Count = 50
    new_property_values: _Count = 1_000
    new_values: _Count = 1_000


class WebsiteRetention(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[retention.websites."example.com"]: what is left out is as for all websites."""

    raw_days: _Days | None = None
    after: After | None = None


class RetentionSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[retention]: how long views are kept."""

    raw_days: _Days = 0
    after: After = "sums"
    websites: dict[str, WebsiteRetention] = {}


class PrivacySection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[privacy]: settings of other sections that go together."""

    preset: Preset = ""


class BackupSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[backup]: where `medamad backup --rotate` writes, and how old the newest backup may be."""

    folder: PathText = PathText("")
    keep: Annotated[int, Meta(ge=1, le=10_000)] = 7
    max_age_hours: Annotated[int, Meta(ge=0, le=100_000)] = 48


class AlertsSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[alerts]: what their webhooks may reach, and the key that signs these."""

    webhook_networks: tuple[Network, ...] = ()
    webhook_key_file: PathText = PathText("")


class MailSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[mail]: the server that mails are sent with."""

    host: MailHost = MailHost("")
    port: Annotated[int, Meta(ge=0, le=65_535)] = 0
    tls: Tls = "starttls"
    user: UserName = UserName("")
    password_file: PathText = PathText("")
    sender: MailAddress = msgspec.field(default=MailAddress(""), name="from")

    def __post_init__(self) -> None:
        if self.user and self.tls == "off":
            raise ValueError(
                'user and tls = "off" contradict each other: the password could be read'
            )


class ClusterSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[cluster]: the ClickHouse servers that hits go to and statistics come from."""

    urls: tuple[ServerUrl, ...] = ()
    database: DatabaseName = DatabaseName("medamad")
    user: UserName = UserName("default")
    password_file: PathText = PathText("")
    ca_file: PathText = PathText("")
    name: ClusterName = ClusterName("")
    replicated: bool = True
    quorum: Annotated[int, Meta(ge=1, le=100)] = 2
    collector: Annotated[int, Meta(ge=1, le=65_535)] = 1
    keep: Annotated[int, Meta(ge=LEAST_KEPT_HOURS, le=100_000)] = 72
    collectors: dict[str, ServerUrl] = {}
    secret_file: PathText = PathText("")


class LogSection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[log]: the format and level of the log."""

    format: LogFormat = "text"
    level: LeastLevel = "info"


class _Document(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    server: ServerSection = ServerSection()
    store: StoreSection = StoreSection()
    events: EventsSection = EventsSection()
    limits: LimitsSection = LimitsSection()
    privacy: PrivacySection = PrivacySection()
    retention: RetentionSection = RetentionSection()
    backup: BackupSection = BackupSection()
    alerts: AlertsSection = AlertsSection()
    mail: MailSection = MailSection()
    cluster: ClusterSection = ClusterSection()
    log: LogSection = LogSection()


_KEYS: Final = {
    "": _Document.__struct_fields__,
    **{each.name: each.type.__struct_encode_fields__ for each in msgspec.structs.fields(_Document)},
}
"""The names of sections, and of the keys of each."""


@frozen(kw_only=True)
class Config:
    """The configuration. `file` is the file that it was read from, None for the defaults."""

    server: ServerSection = field(factory=ServerSection)
    store: StoreSection = field(factory=StoreSection)
    events: EventsSection = field(factory=EventsSection)
    limits: LimitsSection = field(factory=LimitsSection)
    privacy: PrivacySection = field(factory=PrivacySection)
    retention: RetentionSection = field(factory=RetentionSection)
    backup: BackupSection = field(factory=BackupSection)
    alerts: AlertsSection = field(factory=AlertsSection)
    mail: MailSection = field(factory=MailSection)
    cluster: ClusterSection = field(factory=ClusterSection)
    log: LogSection = field(factory=LogSection)
    file: Path | None = None
    warnings: tuple[str, ...] = field(default=(), eq=False)
    """What the operator should change in the file although the daemon can use it."""

    def path(self, text: str) -> Path:
        """Resolve a path in the file, relative to the file's folder."""
        return Path(text).absolute() if self.file is None else self.file.parent / text

    def with_overrides(self, data: Path | None, listen: Sequence[str] | None = None) -> Self:
        """Return the configuration with what the command line overrides."""
        server = self.server
        if data is not None:
            server = msgspec.structs.replace(server, data_dir=PathText(str(data.absolute())))
        if listen:
            texts = Endpoints(map(endpoint_text, listen))
            server = msgspec.structs.replace(server, listen=texts)
        return evolve(self, server=server)

    def data_dir(self, environ: Mapping[str, str]) -> Path:
        """Return the data directory: as configured, else systemd's, else ./medamad-data."""
        if self.server.data_dir:
            return self.path(self.server.data_dir)
        systemds = environ.get("STATE_DIRECTORY", "").partition(":")[0]
        return Path(systemds or "medamad-data").absolute()


def public_url(config: Config) -> str:
    """Return the configured address of the service, "" if there is none."""
    server = config.server
    return str(server.public_url and server.public_url + server.base_path)


def load(file: Path | None) -> Config:
    """Read the configuration; None for the defaults. Raises ConfigError."""
    if file is None:
        return Config()
    file = file.absolute()
    content = _read_toml(file)
    retired = tuple(_remove_retired(file, content))
    document = _convert_all(file, content)
    return Config(
        server=document.server,
        store=document.store,
        events=document.events,
        limits=document.limits,
        privacy=document.privacy,
        retention=document.retention,
        backup=document.backup,
        alerts=document.alerts,
        mail=document.mail,
        cluster=document.cluster,
        log=document.log,
        file=file,
        warnings=(*retired, *_trusts_everybody(file, document.server)),
    )


def _remove_retired(file: Path, content: dict[str, object]) -> Iterator[str]:
    """Remove the keys that no longer have a meaning; return a warning for each."""
    backup = content.get("backup")
    if isinstance(backup, dict) and backup.pop("at", ""):
        yield (
            f"{file}: backup.at is ignored, the daemon makes no backups by itself: run"
            " `systemctl enable --now medamad-backup.timer`, and remove the key"
        )


def _with_preset(content: dict[str, object]) -> dict[str, object]:
    """Add what the preset sets and the file does not."""
    privacy = content.get("privacy")
    preset = privacy.get("preset") if isinstance(privacy, dict) else None
    completed = dict(content)
    for section, keys in _PRESETS.get(preset if isinstance(preset, str) else "", {}).items():
        own = content.get(section, {})
        completed[section] = {**keys, **own} if isinstance(own, dict) else own
    return completed


def _check_preset(file: Path, document: _Document) -> None:
    """Raise ConfigError, naming every key of the file that contradicts its preset."""
    if document.privacy.preset != "exempt":
        return
    days = {"retention.raw_days": document.retention.raw_days} | {
        f"retention.websites.{hostname}.raw_days": own.raw_days
        for hostname, own in document.retention.websites.items()
        if own.raw_days is not None
    }
    contradictions = [
        f"{key} = {number} (expected 1 to {EXEMPT_DAYS})"
        for key, number in days.items()
        if not 1 <= number <= EXEMPT_DAYS
    ]
    if not document.events.respect_gpc:
        contradictions.append("events.respect_gpc = false (expected true)")
    if document.events.origins != "website":
        contradictions.append(f'events.origins = "{document.events.origins}" (expected "website")')
    if contradictions:
        reason = f'"exempt" is contradicted by {", ".join(contradictions)}'
        raise ConfigError(file, "privacy.preset", reason)


def _trusts_everybody(file: Path, server: ServerSection) -> Iterator[str]:
    """Return a warning for each network of every address among the trusted proxies."""
    for proxy in server.trusted_proxies:
        if proxy.endswith("/0"):
            yield (
                f"{file}: server.trusted_proxies: {proxy} trusts everybody, so every client can"
                " claim any address and escape the limits: name the proxy's own address"
            )


class _OnlyServer(Struct, frozen=True):
    """[server], with nothing but the data directory."""

    data_dir: PathText = PathText("")


class _OnlyData(Struct, frozen=True):
    """A file, with nothing but the data directory."""

    server: _OnlyServer = _OnlyServer()


def load_data_dir(file: Path) -> Config:
    """Read only the data directory of a file that is invalid otherwise. Raises ConfigError."""
    file = file.absolute()
    try:
        found = msgspec.convert(_read_toml(file), _OnlyData, dec_hook=read_value)
    except msgspec.ValidationError as error:
        raise ConfigError(file, "server.data_dir", str(error)) from None
    return Config(server=ServerSection(data_dir=found.server.data_dir), file=file)


def _read_toml(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(file, "", error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise ConfigError(file, "", "expected UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(file, "", f"not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(file, "", TOO_DEEP) from None


def _convert_all(file: Path, content: dict[str, Any]) -> _Document:
    """Convert a file. Raises ConfigError for one of its errors, with all others."""
    try:
        return _convert(file, content)
    except ConfigError as error:
        first, *others = list(_errors(file, content)) or [error]
        raise ConfigError(file, first.key, first.reason, others) from None


def _errors(file: Path, content: dict[str, Any]) -> Iterator[ConfigError]:
    """Return what is wrong with each key of a file by itself."""
    reported = set[str]()
    for alone in _single_keys(content):
        try:
            _convert(file, alone)
        except ConfigError as error:
            # An unknown section is wrong with each of its keys.
            if str(error) not in reported:
                yield error
            reported.add(str(error))


def _single_keys(table: object, depth: int = 2) -> Iterator[Any]:
    """Return a table once for each key in it and in its tables, with that key alone."""
    if not depth or not isinstance(table, dict) or not table:
        yield table
        return
    for key, value in table.items():
        below = 2 if key == _WEBSITES else depth - 1
        yield from ({key: alone} for alone in _single_keys(value, below))


def _convert(file: Path, content: dict[str, Any]) -> _Document:
    content = _with_preset(content)
    try:
        document = msgspec.convert(content, _Document, dec_hook=read_value)
        websites = {
            _hostname(file, name): kept for name, kept in document.retention.websites.items()
        }
    except msgspec.ValidationError as error:
        reason, _, place = str(error).rpartition(" - at `$.")
        key = place.removesuffix("`")
        if not reason:
            reason, key = str(error), ""
        if key in _CHOICES:
            reason = f"expected one of {', '.join(_CHOICES[key])}"
        key = _with_name(key, content)
        unknown = _UNKNOWN_KEY.match(reason)
        if unknown:
            _check_quoted(file, key, content, unknown["key"])
            reason = f"unknown key{_nearest(key, unknown['key'])}"
            raise ConfigError(file, f"{key}.{unknown['key']}".lstrip("."), reason) from None
        reason = reason.replace("`", "")
        raise ConfigError(file, key, reason[:1].lower() + reason[1:]) from None
    retention = msgspec.structs.replace(document.retention, websites=websites)
    document = msgspec.structs.replace(document, retention=retention)
    _check_preset(file, document)
    return document


def _nearest(section: str, unknown: str) -> str:
    """Return a question for the key that may be meant, "" if none is similar.

    The same name in another section is meant rather than a similar one in this section.
    """
    for other, names in _KEYS.items():
        if other and unknown in names:
            return f"; did you mean {other}.{unknown}?"
    known = _KEYS.get(section, WebsiteRetention.__struct_fields__)
    similar = difflib.get_close_matches(unknown, known, 1)
    return f"; did you mean {similar[0]}?" if similar else ""


def _with_name(key: str, content: Any) -> str:
    """Return a key with the name of the website or the number of the collector that it is of."""
    if _OF_COLLECTOR in key:
        for number, url in content["cluster"]["collectors"].items():
            try:
                msgspec.convert(url, ServerUrl, dec_hook=read_value)
            except msgspec.ValidationError:
                return key.replace(_OF_COLLECTOR, f"collectors.{number}")
    if _OF_WEBSITE in key:
        for name, table in content["retention"]["websites"].items():
            try:
                msgspec.convert(table, WebsiteRetention)
            except msgspec.ValidationError:
                return key.replace(_OF_WEBSITE, f"websites.{name}")
    return key


def _check_quoted(file: Path, key: str, content: Any, unknown: str) -> None:
    """Raise ConfigError if an unknown key is part of a website's name without quotation marks."""
    name = key.removeprefix("retention.websites.")
    if name == key or "." in name:
        return
    below = content["retention"]["websites"][name][unknown]
    if not isinstance(below, dict):
        return
    name = f"{name}.{unknown}"
    while len(below) == 1 and isinstance(further := next(iter(below.values())), dict):
        name, below = f"{name}.{next(iter(below))}", further
    reason = f'expected the name in quotation marks: [retention.websites."{name}"]'
    raise ConfigError(file, f"retention.websites.{name}", reason)


def _hostname(file: Path, name: str) -> str:
    """Parse the name of a website's table. Raises ConfigError."""
    try:
        return str(read_value(Hostname, name))
    except ValueError as error:
        raise ConfigError(file, f"retention.websites.{name}", str(error)) from None
