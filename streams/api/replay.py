"""The replay endpoint: an execution, or all of an organization's, as of a moment."""

from __future__ import annotations

from aiohttp import web

from streams.api.bearer import has_bearer
from streams.api.errors import BadRequest, NotAllowed
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response
from streams.payload.port import Scope
from streams.replay.business_json import business_json
from streams.replay.cutoff import Cutoff, KafkaOffset, time_of
from streams.replay.organization import PAGE
from streams.replay.state import BUSINESS, known_projection
from streams.replay.state_json import organization_json, state_json

CUTOFFS = ("as_of_event_id", "as_of_position", "as_of_time", "as_of_offset")
_PAGING = ("after", "limit")
_KNOWN = frozenset(
    ("tenant_id", "organization_id", "execution_id", "projection", *CUTOFFS, *_PAGING)
)
MAX_PAGE = 1000


async def show_state(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Return an execution as of a moment with its checksum, or a page of an organization."""
    if unknown := sorted(request.query.keys() - _KNOWN):
        raise BadRequest(tuple(f"{name[:40]!r} is not a parameter" for name in unknown))
    scope = _scope(runtime, request)
    execution_id = _id(request, "execution_id")
    projection = request.query.get("projection", "all")
    if projection != BUSINESS:
        known_projection(projection)
    if execution_id is None:
        if projection != "all":
            raise BadRequest(("projection: is for one execution; give execution_id, too",))
        return await _show_organization(runtime, request, scope)
    if page := [name for name in _PAGING if name in request.query]:
        raise BadRequest(tuple(f"{name}: is for a whole organization" for name in page))
    if projection == BUSINESS:
        business = await runtime.business_replay.state(execution_id, scope, _cutoff(request))
        return json_response(business_json(business))
    found = await runtime.replay.state(execution_id, scope, _cutoff(request))
    return json_response(state_json(found, projection))


async def _show_organization(
    runtime: ApiRuntime, request: web.Request, scope: Scope
) -> web.Response:
    """Return a page of an organization's executions; for operators only."""
    _check_operator(runtime, request)
    after, limit = _id(request, "after"), _id(request, "limit") or PAGE
    if limit > MAX_PAGE:
        raise BadRequest((f"limit: is {limit}, at most {MAX_PAGE}",))
    cut = await runtime.organizations.cut(_cutoff(request))
    page = await runtime.organizations.page(scope, cut, after_id=after or 0, limit=limit)
    return json_response(organization_json(page))


def _check_operator(runtime: ApiRuntime, request: web.Request) -> None:
    if runtime.operator_token is None:
        raise NotAllowed(
            "execution_id: is missing; replaying a whole organization is disabled: "
            "set api.operator_token_file"
        )
    if not has_bearer(request, runtime.operator_token):
        raise NotAllowed(
            "execution_id: is missing; only operators may replay a whole organization: "
            "send the operator token as bearer token"
        )


def _scope(runtime: ApiRuntime, request: web.Request) -> Scope:
    """Return the scope that the query names: both names are mandatory, and the caller's own."""
    missing = [name for name in ("tenant_id", "organization_id") if not request.query.get(name)]
    if missing:
        raise BadRequest(tuple(f"{name}: is missing" for name in missing))
    found = Scope(request.query["tenant_id"], request.query["organization_id"])
    if found != runtime.scope_of(request):
        raise NotAllowed(
            f"tenant {found.tenant_id}, organization {found.organization_id}: the request is of "
            "another one; send its headers Noetl-Tenant and Noetl-Organization"
        )
    return found


def _cutoff(request: web.Request) -> Cutoff:
    time, offset = request.query.get("as_of_time"), request.query.get("as_of_offset")
    return Cutoff(
        event_id=_id(request, "as_of_event_id"),
        seq=_id(request, "as_of_position"),
        time=None if time is None else time_of(time),
        offset=None if offset is None else KafkaOffset.parse(offset),
    )


def _id(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and 0 < int(text) < 2**63):
        raise BadRequest((f"{name}: is {text[:40]!r}, not a whole number above 0",))
    return int(text)
