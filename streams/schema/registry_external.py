"""Schema registry with Confluent's REST interface.

Ids are assigned by the registry and stored in the log forever, so this adapter has no state
and never chooses an id.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote

import aiohttp
from yarl import URL

from streams.errors import Refused, Unavailable
from streams.schema.registry import RegisteredSchema, UnknownSchemaId
from streams.schema.released import canonical

_CONTENT = "application/vnd.schemaregistry.v1+json"
_CONFLICT = 409
_TIMEOUT = aiohttp.ClientTimeout(total=30, connect=5)


class RegistryUnavailable(Unavailable):
    """The registry cannot be reached, or reports an internal error."""

    dependency = "the schema registry"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"schema registry {url}: {why}; check that it runs at this address")


class RegistryRefused(Refused):
    """The registry rejects the request."""

    def __init__(self, url: str, what: str, status: int, message: str) -> None:
        super().__init__(f"schema registry {url}: {what}: {message} (HTTP {status})")
        self.status = status


class BadRegistryAddress(Refused):
    """The address is not valid."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"schema registry {url!r}: {why}; such as http://127.0.0.1:8081")


class RegistryClient:
    """REST client of one registry; translates the HTTP library's exceptions.

    A user and password in the address are sent as basic authentication and never shown.
    """

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        address = _address(url)
        self._auth = _basic(address)
        self._session = session
        self.url = str(address.with_user(None))

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        absent: Collection[int] = (),
    ) -> object:
        """Return the JSON response of one call; None for a status in `absent`."""
        headers = {"Content-Type": _CONTENT} if body is not None else {}
        status, answer = await self.send(method, f"{self.url}{path}", headers, body)
        if status in absent:
            return None
        if status >= 400:
            raise RegistryRefused(self.url, f"{method} {path}", status, _message(answer))
        return answer

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Mapping[str, object] | bytes | None,
    ) -> tuple[int, object]:
        """Send one request to the registry's server; return status and response."""
        content = {"data": body} if isinstance(body, bytes) else {"json": body}
        try:
            async with self._session.request(
                method, url, headers={**self._auth, **headers}, timeout=_TIMEOUT, **content
            ) as response:
                text = await response.text()
                if response.status >= 500:
                    raise RegistryUnavailable(self.url, f"HTTP {response.status} {text[:200]}")
                if not response.content_type.endswith("json"):
                    return response.status, text
                return response.status, await response.json(content_type=None)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise RegistryUnavailable(self.url, f"no answer ({reason})") from error
        except ValueError as error:
            raise RegistryRefused(
                self.url, f"{method} {url}", 200, f"bad answer: {error}"
            ) from error

    async def schema(self, schema_id: int) -> str | None:
        """Return the schema with that id, or None."""
        answer = await self.call("GET", f"/schemas/ids/{schema_id}", absent={404})
        return None if answer is None else str(_entry(self.url, answer, "schema"))

    async def subjects(self) -> list[str]:
        """Return every subject."""
        answer = await self.call("GET", "/subjects")
        return [str(one) for one in answer] if isinstance(answer, list) else []

    async def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject, empty if it does not exist."""
        query = "?deleted=true" if deleted else ""
        path = f"/subjects/{quote(subject, safe='')}/versions{query}"
        answer = await self.call("GET", path, absent={404})
        return [int(one) for one in answer] if isinstance(answer, list) else []

    async def version(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version of a subject."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        answer = await self.call("GET", path)
        schema_id = _entry(self.url, answer, "id")
        schema = _entry(self.url, answer, "schema")
        return RegisteredSchema(int(str(schema_id)), subject, version, str(schema))

    async def register(self, subject: str, **body: object) -> int:
        """Register a schema and return its id."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        answer = await self.call("POST", path, body)
        return int(str(_entry(self.url, answer, "id")))


class ExternalRegistry:
    """A registry that belongs to the deployment, e.g. Apicurio, Confluent's or Karapace."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    async def id_for(self, subject: str, schema: str) -> int:
        """Return the registry's id, registering the schema under `subject` if it is new.

        When several clients register a new subject at once, Apicurio reports a conflict to all
        but one; a retry succeeds, or the conflict is real.
        """
        try:
            return await self._client.register(subject, schema=canonical(schema))
        except RegistryRefused as error:
            if error.status != _CONFLICT:
                raise
        return await self._client.register(subject, schema=canonical(schema))

    async def schema(self, schema_id: int) -> str:
        """Return the schema with that id."""
        found = await self._client.schema(schema_id)
        if found is None:
            raise UnknownSchemaId(schema_id, self._client.url)
        return found

    async def list(self) -> Sequence[RegisteredSchema]:
        """Return every version of every subject; slow."""
        found = [
            await self._client.version(subject, version)
            for subject in await self._client.subjects()
            for version in await self._client.versions(subject)
        ]
        return sorted(found, key=lambda one: (one.schema_id, one.subject))


def _address(url: str) -> URL:
    try:
        address = URL(url.rstrip("/"))
    except ValueError as error:
        raise BadRegistryAddress(url, str(error)) from error
    if address.scheme not in ("http", "https") or not address.host:
        raise BadRegistryAddress(url, "it must begin with http:// or https:// and name a host")
    return address


def _basic(address: URL) -> dict[str, str]:
    if not address.user:
        return {}
    pair = f"{address.user}:{address.password or ''}".encode()
    return {"Authorization": f"Basic {b64encode(pair).decode()}"}


def _message(answer: object) -> str:
    if isinstance(answer, dict):
        return str(answer.get("message", answer))
    return str(answer)[:200] or "no reason given"


def _entry(url: str, answer: object, key: str) -> object:
    if isinstance(answer, dict) and key in answer:
        return answer[key]
    raise RegistryRefused(url, "unexpected answer", 200, f"no {key!r} in {str(answer)[:200]}")
