"""Secrets of a playbook's `keychain`, for the templates of an attempt. Never written anywhere."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from streams.errors import Refused
from streams.events.model import Json
from streams.kafka.work.item import WorkItem
from streams.playbook.model import KeychainEntry
from streams.playbook.spelling import Spelling
from streams.worker.attempt.secrets import conceal
from streams.worker.port import Call, Config, Credentials, Tool

_log = logging.getLogger(__name__)


class Keychain:
    """Fills the entries of a keychain: from the workload, credentials, or a token endpoint."""

    def __init__(self, credentials: Credentials | None, tools: Mapping[str, Tool]) -> None:
        self._credentials, self._http = credentials, tools.get("http")

    async def values(
        self, entries: Sequence[KeychainEntry], scope: Mapping[str, object], item: WorkItem
    ) -> dict[str, Json]:
        """Return the fields of each entry; one that fails is logged and empty.

        An entry sees those before it.

        Raises:
            Unavailable: a dependency is down; retrying is safe.
        """
        found: dict[str, Json] = {}
        for entry in entries:
            try:
                config = entry.config.render({**scope, "keychain": found})
                fields = await self._fields(entry, config if isinstance(config, dict) else {}, item)
            except Refused as error:
                _log.warning("keychain %s of %s is empty: %s", entry.name, item.step, error)
                fields = {}
            conceal(f"keychain.{entry.name}", {k: v for k, v in fields.items() if v is not None})
            found[entry.name] = fields
        return found

    async def _fields(
        self, entry: KeychainEntry, config: Config, item: WorkItem
    ) -> dict[str, Json]:
        match entry.kind:
            case "static":
                return _mapping(config.get("map"))
            case "bearer":
                return {"token": config.get("token"), "access_token": config.get("token")}
            case "credential":
                name = config.get("auth") or config.get("credential") or entry.name
                return await self._credential(str(name), item)
            case "secrets":
                return await self._secrets(config, item)
            case _:
                return await self._token(entry, config, item)

    async def _credential(self, name: str, item: WorkItem) -> dict[str, Json]:
        if self._credentials is None:
            raise Refused("this worker has no credentials")
        return dict(await self._credentials.find(item.tenant_id, item.organization_id, name))

    async def _secrets(self, config: Config, item: WorkItem) -> dict[str, Json]:
        """Return each field of `map` from the provider; a secret of one field is that field."""
        made: dict[str, Json] = {}
        for field, path in _mapping(config.get("map")).items():
            found = await self._credential(f"{config.get('provider')}:{path}", item)
            made[field] = next(iter(found.values())) if len(found) == 1 else dict(found)
        return made

    async def _token(self, entry: KeychainEntry, config: Config, item: WorkItem) -> dict[str, Json]:
        """Ask the token endpoint of an `oauth2` entry; its answer's fields are the entry's."""
        if self._http is None:
            raise Refused("this worker has no tool http")
        asked = {
            "url": config.get("endpoint"),
            "method": config.get("method", "POST"),
            **{key: config[key] for key in ("headers", "data", "params", "auth") if key in config},
        }
        call = Call(
            tenant_id=item.tenant_id,
            organization_id=item.organization_id,
            execution_id=item.execution_id,
            step=item.step,
            task=f"keychain.{entry.name}",
            entity_id=item.entity_id,
            attempt=item.attempt,
            spelling=Spelling.NOETL,
        )
        outcome = await self._http.run(asked, call)
        if outcome.status == "error":
            raise Refused(str((outcome.error or {}).get("message")))
        return _mapping(_mapping(outcome.data).get("data"))


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
