"""The annotations of a website: who sees its figures may list them."""

from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from medamad.domain.annotations import Annotation
from medamad.domain.goals import members_of, new_id
from medamad.domain.instants import second_as_text
from medamad.domain.zones import zone_named
from medamad.query.period import parse_period
from medamad.web.auth import Access
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import Response, json_response, no_content
from medamad.web.routes.goals import changed, sent


class AnnotationDetails(msgspec.Struct, forbid_unknown_fields=True):
    """The body that adds an annotation. Without `time`, it is at the present second."""

    text: str
    time: str | None = None
    link: str | None = None


class AnnotationChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body that changes an annotation: the members that it has; null removes the link."""

    text: str | UnsetType = UNSET
    time: str | UnsetType = UNSET
    link: str | UnsetType | None = UNSET


_ANNOTATION: Final = msgspec.json.Decoder(AnnotationDetails)
_CHANGE: Final = msgspec.json.Decoder(AnnotationChange)


def list_annotations(call: Call, hostname: str) -> Response:
    """Return the annotations of a website, or those in a period."""
    website = call.website(hostname)
    parameters = call.parameters
    period = parse_period(parameters.text("start"), parameters.text("end"))
    timezone = parameters.text("timezone")
    zone = period.zone if timezone is None else zone_named(timezone)
    annotations = call.backend.store.annotations.of(website.number).all
    return json_response(
        [
            members_of(each)
            for each in annotations
            if each.is_between(period.start_ms, period.end_ms, zone)
        ]
    )


async def add_annotation(call: Call, hostname: str) -> Response:
    """Add an annotation."""
    website = call.website(hostname)
    details = call.body(_ANNOTATION)
    new = Annotation(
        id=new_id(),
        time=second_as_text(int(call.backend.clock())) if details.time is None else details.time,
        text=details.text,
        link=details.link,
    )
    annotations = await call.backend.store.annotations.change(
        website.number, lambda old: old.with_annotation(new)
    )
    return json_response(members_of(annotations.annotation(new.id)), HTTPStatus.CREATED)


async def change_annotation(call: Call, hostname: str, annotation: str) -> Response:
    """Change an annotation."""
    website = call.website(hostname)
    change = partial(changed, sent(call.body(_CHANGE)))
    annotations = await call.backend.store.annotations.change(
        website.number, lambda old: old.with_changed(annotation, change)
    )
    return json_response(members_of(annotations.annotation(annotation)))


async def remove_annotation(call: Call, hostname: str, annotation: str) -> Response:
    """Remove an annotation."""
    website = call.website(hostname)
    await call.backend.store.annotations.change(website.number, lambda old: old.without(annotation))
    return no_content()


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    annotations = "/websites/<hostname>/annotations"
    routes.add("GET", annotations, list_annotations, Access.STATISTICS)
    routes.add("POST", annotations, add_annotation, Access.ANNOTATE)
    routes.add("PATCH", f"{annotations}/<annotation>", change_annotation, Access.CHANGE)
    routes.add("DELETE", f"{annotations}/<annotation>", remove_annotation, Access.CHANGE)
