"""The tool that sends HTTP requests, with clients shared by all tasks of the process.

The client is reqwest, through pyreqwest: connections, TLS, redirects and decompression run on
a separate thread, and a request costs the event loop a fifth of aiohttp's. There is a client
for each combination of following redirects, which custom authentication headers forbid, and of
verifying certificates.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from http import HTTPStatus

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import DetailedPyreqwestError, PyreqwestError
from pyreqwest.request import StreamRequest
from pyreqwest.response import Response

from streams.clock import SystemClock
from streams.events.model import Json
from streams.playbook.spelling import Spelling
from streams.worker.attempt.secrets import concealed
from streams.worker.errors import BadConfig, UnknownCredential
from streams.worker.pace.hosts import LONGEST_PAUSE_S, HostPaces, note_answer
from streams.worker.port import Call, Config, Credentials, Outcome
from streams.worker.tools.http.auth import authorization
from streams.worker.tools.http.body import BodyTooLarge, body_of, parsed, read_bounded
from streams.worker.tools.http.noetl import answered, as_request, unanswered
from streams.worker.tools.http.paused import host_of, not_sent
from streams.worker.tools.http.query import pairs
from streams.worker.tools.http.redirect import carries_secret, follow_redirects
from streams.worker.tools.task_config import failed, flag, mapping, request_name, seconds, text

TIMEOUT_S = 30.0
CONNECTIONS = 256
RESPONSE_BYTES = 64 * 1024 * 1024
SHOWN_CHARS = 200
"""How much of an error response is quoted in the message."""
AT_REST_S = 0.1
"""How long the client's thread may touch Python objects after close: an interpreter that
exits within this time aborts (before Python 3.12)."""


class HttpTool:
    """Sends `method` to `url`; the answer's JSON or text is the outcome's data.

    A status of 400 or more is an error of kind `http.status`, with the body as data; no
    response is `http.timeout` or `http.connection`. `outcome.http` has `status` and `headers`
    (names in lower case) if there was a response. `follow_redirects: false` returns a redirect
    itself, and `verify: false` accepts any certificate. NoETL's spelling has its own shapes
    (`http.noetl`).
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections: int = CONNECTIONS,
        response_bytes: int = RESPONSE_BYTES,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._credentials = credentials
        self._connections, self._response_bytes = connections, response_bytes
        self._timeout_s = timeout_s
        self._paces = HostPaces(SystemClock())
        self._clients: dict[tuple[bool, bool], Client] = {}

    async def run(self, config: Config, call: Call) -> Outcome:
        """Send one request."""
        if call.spelling is not Spelling.NOETL:
            return (await self._sent(config, call)).outcome
        try:
            config = as_request(config)
        except BadConfig as error:
            return unanswered(failed("http.config", f"{request_name(config)}: {error}"))
        sent = await self._sent(config, call, is_lenient=True)
        if "http" not in sent.outcome.detail:
            return unanswered(sent.outcome)
        return answered(sent.outcome, url=sent.url, elapsed_s=sent.elapsed_s)

    async def _sent(self, config: Config, call: Call, *, is_lenient: bool = False) -> _Sent:
        """Send one request; if `is_lenient`, a body that is not the JSON it claims is text."""
        try:
            request = await self._request(config, call)
        except (BadConfig, UnknownCredential, ValueError) as error:
            return _Sent(failed("http.config", f"{request_name(config)}: {error}"))
        pace = self._paces.of(host_of(config))
        if pace.pause_s > LONGEST_PAUSE_S:
            return _Sent(not_sent(config, pace.pause_s))
        sent_at = await pace.wait(call.released_lane)
        began = time.monotonic()
        url = str(request.url) if is_lenient else ""
        try:
            async with request as answer:
                content = await read_bounded(answer, self._response_bytes)
            note_answer(pace, sent_at, answer.status, answer.headers.get("retry-after"))
            outcome = _outcome(config, answer, content, is_lenient)
            return _Sent(outcome, url, time.monotonic() - began)
        except BodyTooLarge as error:
            return _Sent(failed("http.too_large", f"{request_name(config)}: {error}"))
        except TimeoutError:
            limit = seconds(config, call, self._timeout_s)
            why = f"{request_name(config)}: no answer within {limit} s"
            return _Sent(failed("http.timeout", why))
        except (PyreqwestError, OSError) as error:
            return _Sent(failed("http.connection", f"{request_name(config)}: {_why(error)}"))

    async def close(self) -> None:
        """Close the client and its connections."""
        if self._clients:
            for client in self._clients.values():
                await client.close()
            self._clients.clear()
            await asyncio.sleep(AT_REST_S)

    async def _request(self, config: Config, call: Call) -> StreamRequest:
        """Return the request that the task describes.

        Raises:
            BadConfig, UnknownCredential, ValueError: the configuration is not valid.
        """
        headers = {name: str(value) for name, value in mapping(config, "headers").items()}
        login: dict[str, str] = {}
        if config.get("auth") is not None:
            login = await authorization(self._credentials, config["auth"], call)
            headers |= login
        body = body_of(config, headers)
        method = str(config.get("method") or ("GET" if body is None else "POST")).upper()
        limit, is_ours = seconds(config, call, self._timeout_s), carries_secret(login)
        follows = flag(config, "follow_redirects", default=True)
        client = self._opened(follows and not is_ours, flag(config, "verify", "verify_ssl"))
        builder = client.request(method, text(config, "url", "endpoint"))
        if query := pairs(mapping(config, "params")):
            builder = builder.query(query)
        if headers:
            builder = builder.headers(headers)
        if isinstance(body, bytes):
            builder = builder.body_bytes(body)
        elif body is not None:
            builder = builder.form(body)
        if limit is not None:
            builder = builder.timeout(_duration(limit))
        if is_ours and follows:
            builder = builder.with_middleware(follow_redirects(login, limit))
        return builder.build_streamed()

    def _opened(self, follows: bool, verifies: bool) -> Client:
        if (found := self._clients.get((follows, verifies))) is None:
            # No cookies: rows must not share them. No proxy from the environment.
            builder = ClientBuilder().max_connections(self._connections).follow_redirects(follows)
            builder = builder.no_proxy().referer(False).user_agent("noetl-streams")
            found = builder.danger_accept_invalid_certs(not verifies).build()
            self._clients[follows, verifies] = found
        return found


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request's outcome, its URL, and how long the answer took."""

    outcome: Outcome
    url: str = ""
    elapsed_s: float = 0.0


def _outcome(config: Config, answer: Response, content: bytes, is_lenient: bool) -> Outcome:
    headers: dict[str, Json] = {name.lower(): value for name, value in answer.headers.items()}
    status = answer.status
    detail: dict[str, Json] = {"http": {"status": status, "headers": headers}}
    try:
        data, meta = parsed(content, str(headers.get("content-type", "")))
    except ValueError as error:
        if status < 400 and not is_lenient:
            message = f"{request_name(config)}: {error}"
            return failed("http.json", message, detail=detail)
        data, meta = content.decode(errors="replace"), {}
    if status >= 400:
        is_text = isinstance(data, str) and not meta
        shown = concealed(str(data) if is_text else content.decode(errors="replace"))[:SHOWN_CHARS]
        message = f"{request_name(config)} answered {status} {_phrase(status)}: {shown}"
        problem: dict[str, Json] = {"kind": "http.status", "message": message}
        problem["status"] = status
        return Outcome(status="error", data=data, meta=meta, error=problem, detail=detail)
    return Outcome(status="success", data=data, meta=meta, detail=detail)


@lru_cache(maxsize=256)
def _duration(limit: float) -> timedelta:
    return timedelta(seconds=limit)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _why(error: Exception) -> str:
    """Return the innermost cause; the outer ones quote the full URL."""
    if isinstance(error, DetailedPyreqwestError):
        causes = error.details["causes"] or []
        return causes[-1]["message"] if len(causes) > 1 else error.message
    return str(error) or type(error).__name__
