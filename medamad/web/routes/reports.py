"""Reports that are mailed: their settings, and the pages that confirm and end them."""

import hashlib
import hmac
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from html import escape
from http import HTTPStatus
from typing import Any, Final

import msgspec
from attrs import evolve
from msgspec import UNSET, UnsetType

from medamad.domain.accounts import LANGUAGES, Settings
from medamad.domain.errors import BadRequest, NotFound, Unavailable
from medamad.domain.subscriptions import (
    LAST_DAY,
    MAX_SUBSCRIPTIONS,
    Every,
    Subscription,
    new_secret,
    new_subscription_id,
)
from medamad.domain.websites import Website
from medamad.domain.zones import zone_named
from medamad.mail.settings import MailFailed, checked_address
from medamad.mail.spans import rescheduled
from medamad.mail.subscription_mails import confirmation
from medamad.mail.texts import TEXTS, Texts
from medamad.web.auth import Access
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import (
    NO_SNIFFING,
    NO_STORE,
    Headers,
    Response,
    json_response,
    no_content,
)
from medamad.web.routes.goals import sent

FIRST_SEGMENT: Final = "mail"
"""The first segment of the paths of the pages."""
_NO_REPORT: Final = "there is no report {}"
_LAST_HOUR: Final = 23


class ReportDetails(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body that adds a report."""

    address: str
    websites: tuple[str, ...]
    every: Every = Every.WEEK
    day: int = 1
    hour: int = 8
    timezone: str = "UTC"
    language: str | None = None


class ReportChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body that changes a report: the members that it has."""

    address: str | UnsetType = UNSET
    websites: tuple[str, ...] | UnsetType = UNSET
    every: Every | UnsetType = UNSET
    day: int | UnsetType = UNSET
    hour: int | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    language: str | UnsetType = UNSET


class TestMail(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for a test mail."""

    address: str


_DETAILS: Final = msgspec.json.Decoder(ReportDetails)
_CHANGE: Final = msgspec.json.Decoder(ReportChange)
_TEST: Final = msgspec.json.Decoder(TestMail)


def _language(call: Call) -> str:
    account = call.backend.store.account.read()
    return (Settings() if account is None else account.settings).language


def _websites_of(call: Call, subscription: Subscription) -> list[Website]:
    by_number = call.backend.store.websites.by_number
    return [found for number in subscription.websites if (found := by_number(number))]


def _members(call: Call, subscription: Subscription) -> dict[str, Any]:
    """Return the JSON members of a report; its secret is for its address alone."""
    members: dict[str, Any] = {
        "id": subscription.id,
        "address": subscription.address,
        "websites": [website.hostname for website in _websites_of(call, subscription)],
        "every": subscription.every,
        "day": subscription.day,
        "hour": subscription.hour,
        "timezone": subscription.timezone,
        "language": subscription.language,
        "confirmed": subscription.confirmed is not None,
        "dateCreated": subscription.created,
    }
    if failure := call.backend.report_failures.get(subscription.id):
        members["failure"] = failure
    return members


def list_reports(call: Call) -> Response:
    """Return the reports that are mailed."""
    call.caller.check_all()
    return json_response([_members(call, each) for _, each in call.backend.store.reports.all()])


async def add_report(call: Call) -> Response:
    """Add a report; an address that is new is asked first."""
    call.caller.check_all()
    backend, details = call.backend, call.body(_DETAILS)
    subscription = Subscription(
        id=new_subscription_id(),
        secret=new_secret(),
        address=checked_address(details.address),
        created=int(backend.clock()),
        **_checked(call, details),
    )
    known = [each for _, each in backend.store.reports.all()]
    _check_room(known, subscription.websites)
    same = [each for each in known if each.address == subscription.address]
    settings = backend.mailer.settings
    if not settings.url:
        raise MailFailed(
            "public_url: set it in the section [server] of the configuration: mails need links"
        )
    settings.check()
    if any(each.confirmed for each in same):
        subscription = evolve(subscription, confirmed=subscription.created)
    elif same:
        # The mail that asks has this secret.
        subscription = evolve(subscription, secret=same[0].secret)
    await backend.store.reports.add(subscription.id.encode("ascii"), subscription)
    if not same:
        letter = confirmation(subscription, _hostnames(call, [subscription]), settings.url)
        try:
            await backend.mailer.send_letter(subscription.address, letter)
        except MailFailed as error:
            if not error.may_have_arrived:
                # Also those that were added meanwhile: they wait for the same answer.
                for key, _ in _found(call, subscription.secret):
                    await backend.store.reports.revoke(key)
                raise
    return json_response(_members(call, subscription), HTTPStatus.CREATED)


def _check_room(others: Iterable[Subscription], websites: Iterable[int]) -> None:
    """Raise BadRequest for a website that is in as many other reports as it can be."""
    counts = Counter(number for each in others for number in each.websites)
    if any(counts[number] >= MAX_SUBSCRIPTIONS for number in websites):
        raise BadRequest(f"websites: a website can be in {MAX_SUBSCRIPTIONS} reports at most")


def _checked(call: Call, details: ReportDetails) -> dict[str, Any]:
    """Return what a report is of, and when it is mailed in which language, as it is stored.

    Raises BadRequest naming the field that is wrong; NotFound.
    """
    last = LAST_DAY[details.every]
    language = details.language or _language(call)
    if not 1 <= details.day <= last:
        raise BadRequest(f"day: expected 1 to {last}")
    if not 0 <= details.hour <= _LAST_HOUR:
        raise BadRequest(f"hour: expected 0 to {_LAST_HOUR}")
    if language not in LANGUAGES:
        raise BadRequest(f"language: expected one of {', '.join(LANGUAGES)}")
    if not 1 <= len(details.websites) <= MAX_SUBSCRIPTIONS:
        raise BadRequest(f"websites: expected 1 to {MAX_SUBSCRIPTIONS} hostnames")
    zone_named(details.timezone)
    numbers = dict.fromkeys(call.website(hostname).number for hostname in details.websites)
    return {
        "websites": tuple(numbers),
        "every": details.every,
        "day": details.day,
        "hour": details.hour,
        "timezone": details.timezone,
        "language": language,
    }


async def change_report(call: Call, report: str) -> Response:
    """Change what a report is of, or when it is mailed; its address stays."""
    call.caller.check_all()
    members, reports = sent(call.body(_CHANGE)), call.backend.store.reports
    all_ = reports.all()
    key, old = next((each for each in all_ if each[1].id == report), (b"", None))
    if old is None:
        raise NotFound(_NO_REPORT.format(report))
    if members.get("address", old.address) != old.address:
        raise BadRequest("address: cannot be changed, add a report for the other address")
    before = ReportDetails(
        address=old.address,
        websites=tuple(website.hostname for website in _websites_of(call, old)),
        every=old.every,
        day=old.day,
        hour=old.hour,
        timezone=old.timezone,
        language=old.language,
    )
    wanted = _checked(call, msgspec.structs.replace(before, **members))
    _check_room((each for _, each in all_ if each.id != report), wanted["websites"])
    now = int(call.backend.clock())
    await reports.change(key, lambda old: rescheduled(old, evolve(old, **wanted), now))
    if (changed := reports.find(key)) is None:
        raise NotFound(_NO_REPORT.format(report))
    return json_response(_members(call, changed))


async def remove_report(call: Call, report: str) -> Response:
    """End a report, and forget its address."""
    call.caller.check_all()
    for key, subscription in call.backend.store.reports.all():
        if subscription.id == report and await call.backend.store.reports.revoke(key):
            call.backend.report_failures.pop(report, None)
            return no_content()
    raise NotFound(_NO_REPORT.format(report))


async def send_test_mail(call: Call) -> Response:
    """Send a test mail; the error is the mail server's own."""
    call.caller.check_all()
    await call.backend.mailer.send_test(call.body(_TEST).address, _language(call))
    return no_content()


# Pages

_STYLE: Final = (
    "body{color-scheme:light dark;max-width:36rem;margin:3rem auto;padding:0 1rem;"
    "font:16px/1.5 system-ui,sans-serif}button{font:inherit;padding:.5rem 1rem}"
)
_HASH: Final = b64encode(hashlib.sha256(_STYLE.encode("ascii")).digest())
_HEADERS: Final[Headers] = (
    NO_STORE,
    NO_SNIFFING,
    (
        b"Content-Security-Policy",
        b"default-src 'none'; style-src 'sha256-%b'; form-action 'self'; frame-ancestors 'none';"
        b" base-uri 'none'" % _HASH,
    ),
    (b"Referrer-Policy", b"no-referrer"),
    (b"X-Robots-Tag", b"noindex, nofollow"),
)


def _page(texts: Texts, said: str, button: str = "", status: int = HTTPStatus.OK) -> Response:
    form = f'<form method="post"><button>{escape(button)}</button></form>' if button else ""
    page = (
        f'<!DOCTYPE html>\n<html lang="{texts.locale}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>medamad</title>'
        f"<style>{_STYLE}</style></head><body><main><h1>medamad</h1><p>{escape(said)}</p>{form}"
        "</main></body></html>\n"
    )
    return Response(status, page.encode("utf-8"), b"text/html; charset=utf-8", _HEADERS)


def _found(call: Call, secret: str) -> list[tuple[bytes, Subscription]]:
    """Return the report with a secret, or those that wait for the same answer, with their keys."""
    given = secret.encode("utf-8")
    return [
        each
        for each in call.backend.store.reports.all()
        if hmac.compare_digest(each[1].secret.encode("ascii"), given)
    ]


def _gone(call: Call, status: int) -> Response:
    texts = TEXTS[_language(call)]
    return _page(texts, texts.gone, status=status)


def _hostnames(call: Call, subscriptions: Iterable[Subscription]) -> list[str]:
    websites = (website for each in subscriptions for website in _websites_of(call, each))
    return list(dict.fromkeys(website.hostname for website in websites))


def _question(call: Call, found: Iterable[tuple[bytes, Subscription]], question: str) -> str:
    return question.format(websites=", ".join(_hostnames(call, (each for _, each in found))))


def ask_to_confirm(call: Call, secret: str) -> Response:
    """Return the page that asks whether the reports are wanted."""
    if not (found := _found(call, secret)):
        return _gone(call, HTTPStatus.NOT_FOUND)
    subscription = found[0][1]
    texts = TEXTS[subscription.language]
    if subscription.confirmed is not None:
        return _page(texts, texts.confirmed)
    return _page(texts, _question(call, found, texts.confirm_question), texts.confirm)


async def _changed(
    change: Callable[[Call, str], Awaitable[Response]], call: Call, secret: str
) -> Response:
    """Return the page that says what a change has done, or that nothing can be stored now."""
    try:
        call.backend.check_is_primary()
        return await change(call, secret)
    except Unavailable as error:
        found = _found(call, secret)
        texts = TEXTS[found[0][1].language if found else _language(call)]
        page = _page(texts, texts.later, status=error.status)
        return evolve(page, headers=(*page.headers, (b"Retry-After", b"%d" % error.retry_after)))


async def confirm(call: Call, secret: str) -> Response:
    """Confirm an address; all its reports that are due from now on are sent to it."""
    if not (found := _found(call, secret)):
        return _gone(call, HTTPStatus.NOT_FOUND)
    reports, (first, subscription) = call.backend.store.reports, found[0]
    now = int(call.backend.clock())
    for key, each in reports.all():
        if each.address == subscription.address and each.confirmed is None:
            # From now on, each can be ended alone.
            is_shared = key != first and each.secret == subscription.secret
            own = new_secret() if is_shared else each.secret
            await reports.change(key, partial(evolve, confirmed=now, secret=own))
    texts = TEXTS[subscription.language]
    return _page(texts, texts.confirmed)


def ask_to_unsubscribe(call: Call, secret: str) -> Response:
    """Return the page that asks whether to end the reports."""
    if not (found := _found(call, secret)):
        return _gone(call, HTTPStatus.NOT_FOUND)
    texts = TEXTS[found[0][1].language]
    return _page(texts, _question(call, found, texts.unsubscribe_question), texts.unsubscribe)


async def unsubscribe(call: Call, secret: str) -> Response:
    """End a report without a login, and forget its address; once more is no error."""
    if not (found := _found(call, secret)):
        return _gone(call, HTTPStatus.OK)
    for key, _ in found:
        await call.backend.store.reports.revoke(key)
    texts = TEXTS[found[0][1].language]
    return _page(texts, texts.gone)


def add_to(routes: Routes) -> None:
    """Add the routes of the settings."""
    routes.add("GET", "/user/reports", list_reports, Access.CHANGE)
    routes.add("POST", "/user/reports", add_report, Access.CHANGE)
    routes.add("PATCH", "/user/reports/<report>", change_report, Access.CHANGE)
    routes.add("DELETE", "/user/reports/<report>", remove_report, Access.CHANGE)
    routes.add("POST", "/user/test-mail", send_test_mail, Access.CHANGE)


def add_pages_to(routes: Routes) -> None:
    """Add the pages, at the root only."""
    path = f"/{FIRST_SEGMENT}/<secret>/"
    routes.add("GET", path + "confirm", ask_to_confirm, Access.FORM)
    routes.add("POST", path + "confirm", partial(_changed, confirm), Access.FORM)
    routes.add("GET", path + "unsubscribe", ask_to_unsubscribe, Access.FORM)
    routes.add("POST", path + "unsubscribe", partial(_changed, unsubscribe), Access.FORM)
