"""docs/privacy.md lists what is kept: a field that is added here needs a word there."""

import attrs
import msgspec
import pytest

from medamad.domain.accounts import Account, Login, Settings, Share, Token
from medamad.domain.alerts import Cause, Notice, Rule
from medamad.domain.annotations import Annotation
from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.domain.goals import Funnel, Goal
from medamad.domain.subscriptions import Subscription
from medamad.domain.website_settings import WebsiteSettings
from medamad.domain.websites import Website
from medamad.storage.import_batches import ImportBatch, Span
from medamad.storage.wal.visit_rules import LiveVisit


@pytest.mark.parametrize(
    ("kept", "fields"),
    [
        (Website, "number hostname created updated settings"),
        (
            WebsiteSettings,
            (
                "bots hosting respect_gpc blocked_networks blocked_countries allowed_hosts"
                " excluded_paths redacted_paths redact_uuids redact_hexadecimal redact_emails"
                " kept_parameters"
            ),
        ),
        (Goal, "id name path event value revenue currency"),
        (Funnel, "id name goals"),
        (Rule, "id kind threshold goal hours url report format fired causes"),
        (Cause, "key since facts"),
        (Notice, "id rule event time facts"),
        (Annotation, "id time text link"),
        (Account, "username password_hash created updated settings"),
        (Settings, "language script_type"),
        (Login, "since last_seen"),
        (Token, "id name scope websites created expires last_used number"),
        (Share, "id name website created password_hash embed number"),
    ],
)
def test_what_is_stored_of_the_owner(kept: type, fields: str) -> None:
    assert [each.name for each in attrs.fields(kept)] == fields.split()


def test_what_is_stored_of_a_mailed_report() -> None:
    assert [each.name for each in attrs.fields(Subscription)] == [
        *("id", "secret", "address", "websites", "every", "day", "hour", "timezone", "language"),
        *("created", "confirmed", "done", "trying", "tries", "changed", "number"),
    ]


def test_what_is_stored_of_an_import() -> None:
    assert ImportBatch.__struct_fields__ == (
        *("website", "number", "source", "digest", "made", "spans", "state"),
        *("views", "visitors", "events", "first_ms", "last_ms", "days"),
    )
    assert [each.name for each in msgspec.structs.fields(Span)] == ["store", "first", "last", "at"]


def test_what_is_stored_of_a_view() -> None:
    """Besides its website, its time, its duration, its properties and two flags."""
    assert [dimension.attribute for dimension in Dimension] == [
        *("path", "referrer"),
        *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"),
        *("browser", "browser_version", "os", "os_version", "device"),
        *("country", "locale", "host", "property", "property_name", "since"),
    ]
    assert [number.attribute for number in ViewNumber] == ["width_class", "visit_offset"]


def test_what_is_in_memory_of_a_visit() -> None:
    assert LiveVisit.__struct_fields__ == (
        *("number", "began_ms", "last_ms", "arrived_ms", "viewed_ms"),
        *("page", "page_before", "page_before_that"),
        *("number_today", "width_px", "taken"),
    )
