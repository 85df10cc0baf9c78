"""The operator's rules of what counts."""

from datetime import UTC, tzinfo

from attrs import field, frozen

from medamad.collect.bots import BotRule
from medamad.collect.networks import Networks
from medamad.collect.origins import OriginRule
from medamad.vocabulary.spam import SpamHosts


@frozen(kw_only=True, eq=False)
class Rules:
    """What to ignore, and whose midnight begins a day. Replaced as a whole on a reload.

    `hits_per_minute` holds for each /24 or /48; 0 is no limit.
    """

    bots: BotRule = "declared"
    origins: OriginRule = "website"
    blocked: Networks = field(factory=Networks)
    spam: SpamHosts = field(factory=SpamHosts)
    zone: tzinfo = UTC
    respect_gpc: bool = False
    """Whether hits of browsers that send Global Privacy Control are ignored."""
    hits_per_minute: int = 6_000
    tells_refused: bool = False
    """Whether the log tells of each hit that does not count."""
