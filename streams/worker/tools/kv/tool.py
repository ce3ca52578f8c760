"""The tool of `kind: nats`: on a NATS server if the task names one, else on our key-value store."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from streams.events.model import Json
from streams.events.text import has_surrogate
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Credentials, Outcome
from streams.worker.tools.kv.port import KvBucket, KvStore
from streams.worker.tools.nats.login import NatsLogin, find_login
from streams.worker.tools.task_config import failed, seconds, text

if TYPE_CHECKING:  # nats-py is optional
    from streams.worker.tools.nats.connection import NatsConnections

OPERATIONS = ("kv_get", "kv_put", "kv_delete", "kv_keys")
SERVER_OPERATIONS = (
    *("kv_purge", "js_publish", "js_get_msg", "js_stream_info"),
    *("object_put", "object_get", "object_delete", "object_list", "object_info"),
)
TIMEOUT_S = 10.0


class NatsTool:
    """`operation` kv_get, kv_put, kv_delete or kv_keys on `bucket` and `key`, and more on a server.

    A credential with an address names a NATS server. Without one, values are in the log's
    database, by tenant and organization: `auth` may name a credential that does not exist.
    `ttl` is in seconds. A put is made once for each call however often it is retried; on a
    server, within the bucket's window for duplicates.
    """

    def __init__(self, store: KvStore | None, credentials: Credentials) -> None:
        self._store, self._credentials = store, credentials
        self._servers: NatsConnections | None = None

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run one operation.

        Raises:
            Unavailable: the NATS server or the log's database cannot be reached.
        """
        try:
            _check_operation(config)
            login = await find_login(config, self._credentials, call)
            if login is not None:
                return await self._on_server(login, config, call)
            if text(config, "operation") in SERVER_OPERATIONS:
                raise BadConfig(
                    f"{config['operation']} needs a NATS server: give `auth` a credential with "
                    "nats_url, nats_user and nats_password"
                )
            if self._store is None:
                raise BadConfig("this worker has no key-value store")
            return await _run(self._store, config, call)
        except BadConfig as error:
            return failed("nats.config", str(error))

    async def close(self) -> None:
        """Close the connections to servers."""
        if self._servers is not None:
            await self._servers.close()

    async def _on_server(self, login: NatsLogin, config: Config, call: Call) -> Outcome:
        from streams.worker.tools.nats.buckets import NatsKv
        from streams.worker.tools.nats.connection import NatsConnections, NatsRefused
        from streams.worker.tools.nats.operations import OPERATIONS as ON_SERVER

        self._servers = self._servers or NatsConnections()
        operation, timeout_s = text(config, "operation"), seconds(config, call, TIMEOUT_S)
        try:
            async with self._servers.use(login, timeout_s or TIMEOUT_S) as jetstream:
                if operation in OPERATIONS:
                    return await _run(NatsKv(jetstream), config, call)
                data = await ON_SERVER[operation](jetstream, config, _call_name(call))
        except NatsRefused as error:
            return failed(f"nats.{error.code}", str(error))
        return Outcome(status="success", data={"status": "success", "operation": operation, **data})


def _check_operation(config: Config) -> None:
    known = (*OPERATIONS, *SERVER_OPERATIONS)
    if (operation := text(config, "operation")) not in known:
        raise BadConfig(f"'operation' is {operation!r}, not one of {', '.join(known)}")


def _call_name(call: Call) -> str:
    """Return a name of the call that is the same in every attempt."""
    return f"{call.execution_id}/{call.entity_id}/{call.task}/{call.partition}.{call.tries}"


async def _run(store: KvStore, config: Config, call: Call) -> Outcome:
    operation = text(config, "operation")
    bucket = KvBucket(call.tenant_id, call.organization_id, _name(config, "bucket"))
    data: dict[str, Json] = {"status": "success", "operation": operation, "bucket": bucket.name}
    if operation == "kv_keys":
        pattern = text(config, "pattern") if config.get("pattern") is not None else "*"
        keys: list[Json] = [key for key in await store.keys(bucket) if fnmatchcase(key, pattern)]
        return Outcome(status="success", data={**data, "keys": keys, "count": len(keys)})
    key = _name(config, "key")
    data["key"] = key
    if operation == "kv_get":
        found = await store.get(bucket, key)
        value = None if found is None else found.value
        data |= {"value": value, "found": found is not None}
        data |= {"revision": None if found is None else found.revision}
    elif operation == "kv_put":
        value, by = config.get("value"), _call_name(call)
        data["revision"] = await store.put(bucket, key, value, by=by, ttl_s=_ttl(config))
    else:
        data["deleted"] = await store.delete(bucket, key)
    return Outcome(status="success", data=data)


def _name(config: Config, field: str) -> str:
    name = text(config, field)
    if "\0" in name or has_surrogate(name) or len(name.encode()) > 1024:
        raise BadConfig(f"{field!r} must be text of at most 1024 bytes")
    return name


def _ttl(config: Config) -> float | None:
    given = config.get("ttl")
    if given is None:
        return None
    try:
        ttl_s = float(str(given))
    except ValueError:
        ttl_s = 0.0
    if not 0 < ttl_s < 10**9:
        raise BadConfig(f"'ttl' must be a number of seconds, not {given!r}")
    return ttl_s
