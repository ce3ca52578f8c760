"""Client of the API's secrets, on behalf of an attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import aiohttp

from streams.events.model import Json
from streams.events.reading import fields_of
from streams.worker.attempt.secrets import AttemptSecrets
from streams.worker.errors import CredentialRefused, TaskUnavailable, UnknownCredential

TIMEOUT_S = 20.0
# Not held: the lease has just ended, which it reports itself; the task is not at fault.
_PASSING = frozenset((409, 429, 500, 502, 503, 504))
ROUTE = "/api/credentials/resolve"


class SecretsUnavailable(TaskUnavailable):
    """The API cannot be reached."""

    dependency = "the API"


class ApiSecrets:
    """A client of POST /api/credentials/resolve.

    `where` returns the API's current address, since a restart may change it.
    """

    def __init__(self, where: Callable[[], str | None], token: str | None) -> None:
        self._where, self._token = where, token
        self._session: aiohttp.ClientSession | None = None

    async def resolve(self, held: AttemptSecrets, name: str) -> Mapping[str, str]:
        """Return the fields of a stored credential."""
        if self._token is None:
            raise CredentialRefused(
                name,
                "this worker has no token for the API; set "
                "credential_store.worker_token_file, the same for workers and API",
            )
        if (url := self._where()) is None:
            raise SecretsUnavailable(
                f"credential {name!r}: no API found; start one "
                "(`streams run api`), or set its address with api.url"
            )
        status, body = await self._post(url, _asked(held, name))
        if status == 200:
            return {one: str(value) for one, value in fields_of(body["fields"]).items()}
        why = str(body.get("detail") or f"the API answered {status}")
        if status == 404:
            raise UnknownCredential(name, ())
        if status in _PASSING:
            raise SecretsUnavailable(f"credential {name!r}: {why}")
        raise CredentialRefused(name, why)

    async def aclose(self) -> None:
        """Release the connection."""
        if self._session is not None:
            await self._session.close()

    async def _post(self, url: str, body: Mapping[str, object]) -> tuple[int, Mapping[str, Json]]:
        if self._session is None:
            limit = aiohttp.ClientTimeout(total=TIMEOUT_S)
            self._session = aiohttp.ClientSession(timeout=limit)
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            async with self._session.post(url + ROUTE, json=body, headers=headers) as answer:
                body = await answer.json(content_type=None)
                return answer.status, body if isinstance(body, dict) else {}
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            why = type(error).__name__
            raise SecretsUnavailable(f"the API at {url} does not answer ({why})") from None


def _asked(held: AttemptSecrets, name: str) -> dict[str, object]:
    item = held.item
    return {
        "execution_id": str(item.execution_id),
        "entity": item.kind,
        "entity_id": str(item.entity_id),
        "attempt": item.attempt,
        "worker_id": held.worker,
        "name": name,
    }
