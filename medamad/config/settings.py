"""Turn a configuration into the settings of each package."""

from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Self

from attrs import field, frozen

from medamad.build import commit
from medamad.config.lists import Lists, load_lists
from medamad.config.schema import (
    INSTALLED,
    ClusterSection,
    Config,
    ConfigError,
    LogSection,
    public_url,
)
from medamad.domain.backups import BackupPlan
from medamad.domain.dimensions import Dimension
from medamad.ingest.networks import Networks
from medamad.ingest.pipeline import Rules
from medamad.ingest.write_queue import QueueSettings
from medamad.lookup.referrers import Sources, SpamHosts
from medamad.mail.settings import PORTS, MailSettings
from medamad.storage.environment.folder import BACKUPS_NAME
from medamad.storage.settings import Keep, Retention, StoreSettings
from medamad.storage.wal.visit_keys import VisitSettings
from medamad.web.settings import WebSettings

_UNIX = "unix"
_UTM = (
    Dimension.UTM_SOURCE,
    Dimension.UTM_MEDIUM,
    Dimension.UTM_CAMPAIGN,
    Dimension.UTM_TERM,
    Dimension.UTM_CONTENT,
)

CREDENTIAL = "medamad.mail-password"
"""The systemd credential with the password of the mail server's user."""
CLUSTER_CREDENTIAL = "medamad.cluster-password"
"""The systemd credential with the password of the user of the ClickHouse servers."""

MAX_COLLECTOR = 65_535
"""The greatest number of a collector."""
_LEAST_SECRET = 32

RESTART_KEYS = (
    *(("cluster", key) for key in ClusterSection.__struct_fields__),
    ("server", "listen"),
    ("server", "data_dir"),
    ("store", "map_size"),
    ("alerts", "webhook_key_file"),
)
"""The keys that are read only at the start, by section and key."""


def store_settings(config: Config) -> StoreSettings:
    """Return the limits of the store."""
    limits = config.limits
    return StoreSettings(
        map_size=config.store.map_size,
        min_free_disk=config.store.min_free_disk,
        new_values={
            Dimension.PATH: limits.new_paths,
            Dimension.REFERRER: limits.new_referrers,
            **dict.fromkeys(_UTM, limits.new_utm),
            Dimension.PROPERTY_NAME: limits.new_property_names,
            Dimension.PROPERTY: limits.new_property_values,
        },
        other_new_values=limits.new_values,
        retention=retention(config),
        spool_hours=config.cluster.keep if config.cluster.urls else 0,
        visits=VisitSettings(
            is_on=config.events.visits,
            timeout_ms=config.events.visit_timeout * 60_000,
            capacity=limits.live_visits,
            zone=config.events.timezone,
        ),
    )


def retention(config: Config) -> Retention:
    """Return how long views are kept."""
    kept = config.retention
    return Retention(
        others=Keep(kept.raw_days, kept.after),
        websites={
            hostname: Keep(
                kept.raw_days if own.raw_days is None else own.raw_days, own.after or kept.after
            )
            for hostname, own in kept.websites.items()
        },
        zone=config.events.timezone,
    )


def backup_folder(config: Config, data_dir: Path) -> Path:
    """Return the folder that `medamad backup --rotate` writes to."""
    folder = config.backup.folder
    return config.path(folder) if folder else data_dir / BACKUPS_NAME


def backup_plan(config: Config, data_dir: Path) -> BackupPlan:
    """Return where backups are, and how old the newest may be."""
    return BackupPlan(
        folder=backup_folder(config, data_dir),
        max_age_s=config.backup.max_age_hours * 3_600,
        is_expected=bool(config.backup.folder),
    )


def queue_settings(config: Config) -> QueueSettings:
    """Return how hits are batched."""
    return QueueSettings(
        interval_s=config.store.commit_interval_ms / 1_000,
        max_records=config.store.commit_max_hits,
        max_waiting=config.limits.max_waiting_hits,
    )


def rules(config: Config, lists: Lists) -> Rules:
    """Return which hits count."""
    return Rules(
        bots=config.events.bots,
        origins=config.events.origins,
        blocked=lists.blocked,
        hosting=lists.hosting,
        hosting_rule=config.events.hosting,
        spam=SpamHosts(lists.spam_hosts),
        zone=config.events.timezone,
        respect_gpc=config.events.respect_gpc,
        is_exempt=config.privacy.preset == "exempt",
        hits_per_minute=config.limits.hits_per_minute,
        has_visits=config.events.visits,
        has_visitors=config.events.unique != "none",
        has_returning=config.events.returning,
        logs_uncounted=config.log.level == "debug",
    )


def sources(
    lists: Lists, shipped: Callable[[Mapping[str, str]], Sources] = Sources.shipped
) -> Sources:
    """Return the names of sources: the shipped ones and the operator's. Raises ConfigError."""
    try:
        return shipped(lists.referrer_names)
    except (OSError, ValueError) as error:
        raise ConfigError(INSTALLED, "", str(error)) from None


def web_settings(config: Config, lists: Lists, data_dir: Path) -> WebSettings:
    """Return the settings of the web server. Raises ConfigError."""
    server = config.server
    return WebSettings(
        sources=sources(lists),
        robots=lists.robots,
        data_dir=data_dir,
        commit=commit(),
        demo=server.demo,
        base_path=str(server.base_path),
        public_url=str(server.public_url),
        webhook_networks=_networks(config.alerts.webhook_networks),
        hostnames=frozenset(map(str, server.hostnames)),
        cors_origins=frozenset(server.cors_origins),
        trusted_proxies=_networks(server.trusted_proxies),
        trust_unix=_UNIX in server.trusted_proxies,
        proxy_header=server.proxy_header,
        metrics_from=_networks(server.metrics_from),
        metrics_from_unix=_UNIX in server.metrics_from,
        script_name=str(server.script_name),
        event_name=str(server.event_name),
        max_body_bytes=config.limits.max_body_bytes,
        max_connections=config.limits.max_connections,
        max_connections_per_network=config.limits.max_connections_per_network,
    )


def webhook_key_file(config: Config, environ: Mapping[str, str]) -> Path | None:
    """Return the file with the key of webhooks: as configured, else systemd's; None for neither."""
    if config.alerts.webhook_key_file:
        return config.path(config.alerts.webhook_key_file)
    credential = Path(environ.get("CREDENTIALS_DIRECTORY", ""), "medamad.webhook-key")
    return credential if credential.is_absolute() and credential.exists() else None


def mail_settings(config: Config, environ: Mapping[str, str]) -> MailSettings:
    """Return how mails are sent, and read the password. Raises ConfigError."""
    mail = config.mail
    if mail.host and not mail.sender:
        raise ConfigError(_file(config), "mail.from", "required, since mail.host is set")
    return MailSettings(
        host=str(mail.host),
        port=mail.port or PORTS[mail.tls],
        tls=mail.tls,
        user=str(mail.user),
        password=_password(config, environ) if mail.host and mail.user else "",
        sender=str(mail.sender),
        url=public_url(config),
    )


@frozen(kw_only=True)
class ClusterSettings:
    """The ClickHouse servers of a cluster, and what a collector sends to them."""

    urls: tuple[str, ...]
    database: str
    user: str
    password: str = field(repr=False)
    ca_file: str | None
    name: str
    """What the servers call the cluster, "" for a single server."""
    is_replicated: bool
    """Whether the servers of a shard are replicas of each other."""
    quorum: int
    """How many replicas must have a row: 1 without replicas."""
    collector: int
    collectors: Mapping[int, str] = field(factory=dict)
    """The addresses of all collectors by number, this one's too; empty where there is but one."""
    secret: str = field(default="", repr=False)
    """What collectors know each other by."""


def cluster_settings(config: Config, environ: Mapping[str, str]) -> ClusterSettings | None:
    """Return how the cluster is reached, None without one, and read the password.

    Raises ConfigError.
    """
    cluster = config.cluster
    if not cluster.urls:
        if cluster != ClusterSection():
            raise ConfigError(_file(config), "cluster.urls", "required, since [cluster] is there")
        return None
    _check_retention(config)
    password = ""
    if cluster.password_file or Path(_credential(environ, CLUSTER_CREDENTIAL)).is_file():
        key, named = "cluster.password_file", cluster.password_file
        credential = _credential(environ, CLUSTER_CREDENTIAL)
        password = _secret_in(config, key, config.path(named) if named else Path(credential))
    return ClusterSettings(
        urls=tuple(map(str, cluster.urls)),
        database=str(cluster.database),
        user=str(cluster.user),
        password=password,
        ca_file=_certificates(config),
        name=str(cluster.name),
        is_replicated=cluster.replicated,
        quorum=cluster.quorum if cluster.name and cluster.replicated else 1,
        collector=cluster.collector,
        collectors=_collectors(config),
        secret=_cluster_secret(config),
    )


def _certificates(config: Config) -> str | None:
    """Return the file with further certificates, None without one. Raises ConfigError."""
    if not config.cluster.ca_file:
        return None
    import ssl  # noqa: PLC0415 - only for a cluster

    path = config.path(config.cluster.ca_file)
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError as error:
        reason = f"{path}: expected certificates in PEM"
        raise ConfigError(_file(config), "cluster.ca_file", reason) from error
    except OSError as error:
        reason = f"{path}: {error.strerror}"
        raise ConfigError(_file(config), "cluster.ca_file", reason) from error
    return str(path)


def _collectors(config: Config) -> dict[int, str]:
    """Return the addresses of the collectors by number. Raises ConfigError."""
    key, found = "cluster.collectors", {}
    for number, url in config.cluster.collectors.items():
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= MAX_COLLECTOR):
            reason = f"expected a number from 1 to {MAX_COLLECTOR}"
            raise ConfigError(_file(config), f"{key}.{number}", reason)
        found[int(number)] = str(url)
    own = config.cluster.collector
    if found and own not in found:
        reason = f"expected the addresses of all collectors, and there is none of this one, {own}"
        raise ConfigError(_file(config), key, reason)
    return found


def _cluster_secret(config: Config) -> str:
    """Return what the collectors know each other by, "" for one alone. Raises ConfigError."""
    key, named = "cluster.secret_file", config.cluster.secret_file
    if not config.cluster.collectors:
        return ""
    if not named:
        raise ConfigError(_file(config), key, "required, since cluster.collectors is set")
    secret = _secret_in(config, key, config.path(named))
    if len(secret) < _LEAST_SECRET or not secret.isascii():
        reason = f"expected at least {_LEAST_SECRET} characters, such as of `openssl rand -hex 32`"
        raise ConfigError(_file(config), key, reason)
    return secret


def _check_retention(config: Config) -> None:
    """Raise ConfigError if daily totals are to remain of views: a cluster makes none."""
    kept = retention(config)
    rules = {"retention": kept.others} | {
        f"retention.websites.{hostname}": rule for hostname, rule in kept.websites.items()
    }
    for key, rule in rules.items():
        if rule.raw_days and rule.after == "sums":
            reason = (
                'expected "nothing", since [cluster] is set: a cluster makes no daily totals'
                " (or raw_days = 0, to keep all views)"
            )
            raise ConfigError(_file(config), f"{key}.after", reason)


def _credential(environ: Mapping[str, str], name: str) -> str:
    folder = environ.get("CREDENTIALS_DIRECTORY")
    return str(Path(folder, name)) if folder else ""


def _password(config: Config, environ: Mapping[str, str]) -> str:
    key, named = "mail.password_file", config.mail.password_file
    credential = _credential(environ, CREDENTIAL)
    if not named and not credential:
        reason = f"expected a file, or a systemd credential {CREDENTIAL}, since mail.user is set"
        raise ConfigError(_file(config), key, reason)
    return _secret_in(config, key, config.path(named) if named else Path(credential))


def _secret_in(config: Config, key: str, file: Path) -> str:
    """Return the password in a file. Raises ConfigError, naming the key that names the file."""
    try:
        password = file.read_text("utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "expected UTF-8"
        raise ConfigError(_file(config), key, f"{file}: {why}") from None
    if not password or not password.isprintable():
        raise ConfigError(_file(config), key, f"{file}: expected one line with the password")
    return password


def _file(config: Config) -> Path:
    return config.file or INSTALLED


def _networks(peers: Iterable[str]) -> Networks:
    return Networks(ip_network(peer) for peer in peers if peer != _UNIX)


@frozen
class Replaceable:
    """The settings that a reload replaces."""

    config: Config
    rules: Rules
    queue: QueueSettings
    store: StoreSettings
    web: WebSettings
    backups: BackupPlan
    mail: MailSettings
    cluster: ClusterSettings | None
    log: LogSection

    @classmethod
    def read(cls, config: Config, data_dir: Path, environ: Mapping[str, str]) -> Self:
        """Read the lists beside the configuration, and derive all settings.

        Takes long where the lists are long; may run in any thread. Raises ConfigError.
        """
        lists = load_lists(config)
        return cls(
            config=config,
            rules=rules(config, lists),
            queue=queue_settings(config),
            store=store_settings(config),
            web=web_settings(config, lists, data_dir),
            backups=backup_plan(config, data_dir),
            mail=mail_settings(config, environ),
            cluster=cluster_settings(config, environ),
            log=config.log,
        )


def needing_restart(old: Config, new: Config) -> list[str]:
    """Return the changed keys that take effect only at the next start."""
    return [
        f"{section}.{key}"
        for section, key in RESTART_KEYS
        if getattr(getattr(old, section), key) != getattr(getattr(new, section), key)
    ]
