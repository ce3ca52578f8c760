"""The tool that sends HTTP requests, all through one session of the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from streams.envelope.model import Json
from streams.worker.errors import BadConfig, UnknownCredential
from streams.worker.port import Call, Config, Credentials, Outcome
from streams.worker.tools.failure import failed, mapping, seconds, text
from streams.worker.tools.http_auth import authorization
from streams.worker.tools.http_body import TooLarge, body_of, parsed, read_bounded

TIMEOUT_S = 30.0
CONNECTIONS = 256
RESPONSE_BYTES = 64 * 1024 * 1024


class HttpTool:
    """Sends `method` to `url`; the answer's JSON or text is the outcome's data.

    An answer of 400 or more is an error of kind `http.status`, its body kept as data; no
    answer is `http.timeout` or `http.connection`. `outcome.http` has `status` and `headers`
    (names in lower case) whenever there was an answer.
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
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}
        self._session: aiohttp.ClientSession | None = None

    async def run(self, config: Config, call: Call) -> Outcome:
        """Send one request."""
        try:
            return await self._send(config, call)
        except (BadConfig, UnknownCredential, aiohttp.InvalidURL) as error:
            return failed("http.config", f"{_name(config)}: {error}")
        except TooLarge as error:
            return failed("http.too_large", f"{_name(config)}: {error}")
        except TimeoutError:
            limit = seconds(config, call, self._timeout_s)
            return failed("http.timeout", f"{_name(config)}: no answer within {limit} s")
        except (aiohttp.ClientError, OSError) as error:
            why = str(error) or type(error).__name__
            return failed("http.connection", f"{_name(config)}: {why}")

    async def close(self) -> None:
        """Close the session and its connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(self, config: Config, call: Call) -> Outcome:
        headers = {name: str(value) for name, value in mapping(config, "headers").items()}
        if config.get("auth") is not None:
            headers |= await authorization(self._credentials, config["auth"], call)
        body = body_of(config, headers)
        async with self._opened().request(
            str(config.get("method") or ("GET" if body is None else "POST")).upper(),
            text(config, "url", "endpoint"),
            params=_query(config),
            headers=headers,
            data=body,
            timeout=self._timeout(seconds(config, call, self._timeout_s)),
        ) as answer:
            content = await read_bounded(answer, self._response_bytes)
            return _outcome(config, answer, content)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                cookie_jar=aiohttp.DummyCookieJar(),  # rows must not see each other's cookies
            )
        return self._session

    def _timeout(self, limit: float | None) -> aiohttp.ClientTimeout:
        key = limit or 0.0
        if (found := self._timeouts.get(key)) is None:
            found = self._timeouts[key] = aiohttp.ClientTimeout(total=limit)
        return found


def _outcome(config: Config, answer: aiohttp.ClientResponse, content: bytes) -> Outcome:
    headers: dict[str, Json] = {name.lower(): value for name, value in answer.headers.items()}
    detail: dict[str, Json] = {"http": {"status": answer.status, "headers": headers}}
    try:
        data, meta = parsed(content, answer)
    except ValueError as error:
        if answer.status < 400:
            why = f"{_name(config)}: {error}"
            return failed("http.json", why, detail=detail)
        data, meta = content.decode(errors="replace"), {}
    if answer.status >= 400:
        shown = content[:200].decode(errors="replace")
        said = f"{_name(config)} answered {answer.status} {answer.reason or ''}: {shown}"
        problem: dict[str, Json] = {"kind": "http.status", "message": said}
        problem["status"] = answer.status
        return Outcome(status="error", data=data, meta=meta, error=problem, detail=detail)
    return Outcome(status="success", data=data, meta=meta, detail=detail)


def _query(config: Config) -> list[tuple[str, str]] | None:
    """Return the query's pairs: lists repeat their name, null leaves it out."""
    pairs: list[tuple[str, str]] = []
    for name, value in mapping(config, "params").items():
        for one in value if isinstance(value, list) else (value,):
            if one is not None:
                pairs.append((name, _plain(one)))
    return pairs or None


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping | list):
        return orjson.dumps(value).decode()
    return str(value)


def _name(config: Config) -> str:
    """Name the request in a message, without its query, which may hold a secret."""
    url = str(config.get("url") or config.get("endpoint") or "").split("?", 1)[0]
    return f"{str(config.get('method') or 'GET').upper()} {url.rsplit('@', 1)[-1]}"
