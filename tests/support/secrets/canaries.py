"""Secrets that are hard to hide, a server that gives them back, and how to look for them."""

from __future__ import annotations

import json
import random
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from uuid import uuid4

from aiohttp import web

# No letter of these is escaped by anybody, and none is a digit of a digest.
ENDS = "".join(random.choices("ghjkmnpqrstvwxyz", k=8)), "".join(random.choices("GHJKMNPQ", k=8))


def _canary(what: str, strange: str) -> str:
    """Return a secret of which both ends can be found, however its middle is written."""
    return f"{ENDS[0]}-{what}{strange}{ENDS[1]}"


RIGHT = _canary("right", "\"\\/%@'ä€ ")
WRONG = _canary("wrong", "\"\\/%@'ä€ ")
TOKEN = _canary("token", '"\\/+<&')
PASSWORD = _canary("password", '"\\/:ä€ ')
KEY = _canary("key", '"\\/' + "k" * 300)
"""Longer than what a message shows of an answer."""
MARKER = f"m4rker-{uuid4().hex}"
"""No secret: it must be found wherever secrets are looked for, or the search is blind."""


def needles() -> Iterator[bytes]:
    """Yield what no text may have in it: the ends of canaries, also as hex and in base64."""
    for end in (one.encode() for one in ENDS):
        yield end
        yield end.hex().encode()
        for before in range(3):
            written = b64encode(bytes(before) + end)
            yield written[(before * 8 + 5) // 6 : (before + len(end)) * 8 // 6]


NEEDLES = tuple(needles())


def leaks(text: bytes | str) -> list[bytes]:
    """Return what gives a canary away in a text."""
    data = text.encode() if isinstance(text, str) else text
    return [one for one in NEEDLES if one in data]


@asynccontextmanager
async def echoing() -> AsyncIterator[str]:
    """Serve an address that answers with the login it is sent, first of all.

    `status` is what it answers, `before` how much stands before the login; `as=text`,
    `slashed` or `plain` say how: as no JSON, with slashes escaped, or without the login.
    """
    app = web.Application()
    app.router.add_route("*", "/", _echo)
    runner = web.AppRunner(app, access_log=None)
    try:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _echo(request: web.Request) -> web.Response:
    query, login = request.query, request.headers.get("Authorization", "none")
    if login.startswith("Basic "):
        login += f" is {b64decode(login[6:]).decode()}"
    sent = {
        "before": int(query.get("before", "0")) * "x",
        "login": [request.headers.get("X-Key", "none"), login],
        "headers": dict(request.headers),
        "body": await request.text(),
        "marker": MARKER,
    }
    status, how = int(query.get("status", "200")), query.get("as", "json")
    if how == "plain":
        return web.Response(text=MARKER * 1000, status=status)
    if how == "text":
        return web.Response(text="\n".join([sent["before"], *sent["login"]]), status=status)
    text = json.dumps(sent).replace("/", "\\/") if how == "slashed" else json.dumps(sent)
    headers = {"X-Login": request.headers.get("Authorization", "none")}
    return web.Response(text=text, status=status, headers=headers, content_type="application/json")
