"""Redirects for requests with secret headers, which are sent to the first origin only.

Clients drop only `Authorization` when a redirect leads to another origin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

from pyreqwest.http import Url
from pyreqwest.middleware import Next
from pyreqwest.request import Request
from pyreqwest.response import Response

MOST = 10
_AS_GET = frozenset((301, 302, 303))
_FOLLOWED = frozenset((*_AS_GET, 307, 308))
_OF_BODY = ("content-type", "content-length", "content-encoding", "transfer-encoding")
_DROPPED = ("authorization", "cookie", "proxy-authorization")
"""Headers that clients drop by themselves."""


def carries_secret(headers: Collection[str]) -> bool:
    """Return whether a client would send one of these to another origin."""
    return any(name.lower() not in _DROPPED for name in headers)


def follow_redirects(
    secret: Collection[str], limit_s: float | None
) -> Callable[[Request, Next], Awaitable[Response]]:
    """Return middleware that follows redirects for a pyreqwest client that follows none."""

    async def follow(request: Request, rest: Next) -> Response:
        async with asyncio.timeout(limit_s):
            for _ in range(MOST + 1):
                asked = request.copy()
                answer = await rest.run(request)
                target = _target(asked.url, answer)
                if target is None:
                    return answer
                request = _redirected(asked, answer.status, target, secret)
        raise ConnectionError(f"redirected more than {MOST} times")

    return follow


def _target(asked: Url, answer: Response) -> Url | None:
    """Return the target of a redirect, if the answer is one."""
    location = answer.get_header("location")
    if answer.status not in _FOLLOWED or location is None:
        return None
    try:
        target = asked.join(location)
    except ValueError:
        return None
    return target if target.scheme in ("http", "https") else None


def _redirected(asked: Request, status: int, target: Url, secret: Collection[str]) -> Request:
    if status in _AS_GET:
        asked.method = asked.method if asked.method in ("GET", "HEAD") else "GET"
        asked.body = None
        _drop(asked, _OF_BODY)
    if target.origin_ascii != asked.url.origin_ascii:
        _drop(asked, (*secret, *_DROPPED))
    asked.url = target
    return asked


def _drop(request: Request, names: Collection[str]) -> None:
    for name in names:
        request.headers.pop(name, None)
