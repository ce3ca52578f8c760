"""Errors as problem+json responses."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Sequence

import orjson
from aiohttp import web

from streams.api.errors import BadRequest, NotAllowed, NotFound, NotYours
from streams.catalog.errors import TakenWebhook, UnknownPath, UnknownVersion
from streams.credential.errors import NoCredential, NotHeld, NotNamed
from streams.errors import PoisonRecord, Refused, StreamsError, Unavailable
from streams.events.errors import BadEvent
from streams.execution.suspension import AlreadySo
from streams.log.errors import IdempotencyConflict, RootEnded, VersionConflict
from streams.payload.errors import PayloadForeign, PayloadMissing
from streams.projector.business.reading import AmbiguousProjection, NoSuchProjection
from streams.projector.stores.port import DamagedProjection
from streams.replay.errors import MissingObject, NoSuchExecution, TamperedLog
from streams.replay.fork.errors import WouldRepeat
from streams.results.lookup import ExpiredResult, ForeignResult, NoSuchResult
from streams.retention.errors import DamagedArchive
from streams.trigger.subscriptions.webhook_errors import (
    LimitReached,
    NoSuchWebhook,
    NotVerified,
    SharedPath,
    WebhookPaused,
)

logger = logging.getLogger(__name__)
PROBLEM = "application/problem+json"
RETRY_AFTER_S = 2
# The first match wins, so subclasses come before their bases.
_STATUS: tuple[tuple[type[StreamsError], int], ...] = (
    (NotFound, 404),
    (UnknownPath, 404),
    (UnknownVersion, 404),
    (PayloadMissing, 404),
    (NoCredential, 404),
    (NotAllowed, 401),
    (NotNamed, 403),
    (NotHeld, 409),
    (NoSuchResult, 404),
    (ForeignResult, 403),
    (PayloadForeign, 403),
    (ExpiredResult, 410),
    (NotYours, 409),
    (AlreadySo, 409),
    (RootEnded, 409),
    (VersionConflict, 409),
    (IdempotencyConflict, 409),
    (NoSuchWebhook, 404),
    (SharedPath, 409),
    (TakenWebhook, 409),
    (NotVerified, 401),
    (LimitReached, 429),
    (WebhookPaused, 503),
    (NoSuchExecution, 404),
    (TamperedLog, 409),
    (DamagedArchive, 409),
    (MissingObject, 409),
    (NoSuchProjection, 404),
    (AmbiguousProjection, 409),
    (DamagedProjection, 409),
    (WouldRepeat, 409),
    (BadRequest, 422),
    (BadEvent, 422),
    (PoisonRecord, 422),
    (Refused, 422),
    (Unavailable, 503),
)
# Clients know these by the names that their classes once had.
_NAMES: dict[type[StreamsError], str] = {ExpiredResult: "result-expired"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def report_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Return every error as a problem; a bug is logged, and reported without details."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _problem(request, error.status, "http", error.reason, error.text or error.reason)
    except StreamsError as error:
        return _known(request, error)
    except Exception:
        logger.exception("%s %s failed", request.method, request.path)
        detail = "see the server's log"
        return _problem(request, 500, "internal", "internal error", detail)


def status_of(error: type[StreamsError]) -> int:
    """Return the HTTP status of an error."""
    return next((code for kind, code in _STATUS if issubclass(error, kind)), 500)


def name_of(error: type[StreamsError]) -> str:
    """Return the public name of an error: the name of its class, unless one is given."""
    return _NAMES.get(error) or re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


def _known(request: web.Request, error: StreamsError) -> web.Response:
    status, name = status_of(type(error)), name_of(type(error))
    response = _problem(
        request,
        status,
        name,
        name.replace("-", " "),
        str(error),
        problems=getattr(error, "problems", None),
    )
    if status in (429, 503):
        wait_s = getattr(error, "retry_after_s", RETRY_AFTER_S)
        response.headers["Retry-After"] = str(wait_s)
    return response


def _problem(
    request: web.Request,
    status: int,
    kind: str,
    title: str,
    detail: str,
    *,
    problems: Sequence[object] | None = None,
) -> web.Response:
    body = {
        "type": f"urn:noetl:problem:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.path,
    }
    if problems:
        body["problems"] = [str(one) for one in problems]
    return web.Response(body=orjson.dumps(body), status=status, content_type=PROBLEM)
