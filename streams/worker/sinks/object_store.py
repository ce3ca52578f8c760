"""Objects in S3-compatible stores and in Google Cloud Storage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

import obstore
import orjson
from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import GCSStore, S3Store

from streams.events.model import Json
from streams.worker.attempt.secrets import concealed
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.clients import Clients
from streams.worker.sinks.format import MEDIA_TYPES, encoded, numbered, parts, span, surplus
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference, SinkRefused

if TYPE_CHECKING:  # obstore defines these for type checkers only
    from obstore.store import ClientConfig, RetryConfig

_Store: TypeAlias = S3Store | GCSStore
_REFUSED = (PermissionDeniedError, UnauthenticatedError, InvalidPathError)
_RETRY: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=15)}


class _Objects:
    """Puts each value as an object whose name is the same in every attempt.

    `spec.key` (or `path`) is the object's name; with mode append it is a prefix, and every
    write adds an object below it.
    """

    scheme = ""
    _kind: Callable[..., _Store]

    def __init__(self, around: SinkEnvironment) -> None:
        self._stores = Clients[_Store](_release)

    async def write(self, job: SinkJob) -> SinkReference:
        """Put the value; a list with `chunk_size` becomes several objects."""
        bucket, key = _bucket(job), _key(job)
        made, config = parts(job), self._config(job)
        login = (bucket, *sorted(config.items()))
        at_once = asyncio.Semaphore(job.concurrency)

        async def put(store: _Store, number: int | None, data: Json) -> None:
            content = await asyncio.to_thread(encoded, data, job.format)
            attributes = {"Content-Type": MEDIA_TYPES[job.format]}
            async with at_once:
                await obstore.put_async(
                    store, numbered(key, number), content, attributes=attributes
                )

        try:
            async with self._stores.use(login, lambda: self._opened(bucket, config)) as store:
                await asyncio.gather(*(put(store, number, data) for number, data in made))
                if (first := surplus(job, made)) is not None:
                    await _remove(store, key, first)
        except FileNotFoundError as error:
            why = f"bucket {bucket!r} does not exist; create it, or name another in `spec`"
            raise SinkRefused("notfound", why) from error
        except _REFUSED as error:
            raise SinkRefused(_code(error), f"{bucket}/{key}: {_first_line(error)}") from error
        except BaseError as error:
            raise TargetUnavailable(f"{bucket}: {_first_line(error)}; retrying") from error
        return {"store": "object", "key": f"{self.scheme}://{bucket}/{key}", "range": span(made)}

    async def read(self, job: SinkJob, limit: int) -> bytes:
        """Return the content of the object `spec.key`.

        Raises:
            BadConfig: it does not exist, or has more than `limit` bytes.
            SinkRefused: the store refuses it.
            TargetUnavailable: the store cannot be reached.
        """
        bucket, key, config = _bucket(job), str(job.spec.get("key") or ""), self._config(job)
        name = f"{self.scheme}://{bucket}/{key}"
        try:
            store = self._opened(bucket, config)
            found = await obstore.get_async(store, key)
            if found.meta["size"] > limit:
                raise BadConfig(f"{name} has {found.meta['size']} bytes, more than {limit}")
            return bytes(await found.bytes_async())
        except FileNotFoundError as error:
            raise BadConfig(f"{name} does not exist") from error
        except _REFUSED as error:
            raise SinkRefused(_code(error), f"{name}: {_first_line(error)}") from error
        except BaseError as error:
            raise TargetUnavailable(f"{name}: {_first_line(error)}; retrying") from error

    async def close(self) -> None:
        """Release the stores."""
        await self._stores.close()

    def _opened(self, bucket: str, config: dict[str, str]) -> _Store:
        is_plain = config.get("endpoint", config.get("base_url", "")).startswith("http://")
        options: ClientConfig = {"allow_http": is_plain}
        try:
            return self._kind(bucket, client_options=options, retry_config=_RETRY, **config)
        except BaseError as error:
            raise BadConfig(f"{bucket}: {_first_line(error)}") from error

    def _config(self, job: SinkJob) -> dict[str, str]:
        """Return the store's configuration, including the login."""
        raise NotImplementedError


class S3Driver(_Objects):
    """S3: `endpoint`, `region`, `access_key`, `secret_key` from the credential or `spec`."""

    scheme, _kind = "s3", S3Store

    def _config(self, job: SinkJob) -> dict[str, str]:
        config: dict[str, str] = {"region": job.setting("region") or "us-east-1"}
        for name, names in (
            ("endpoint", ("endpoint",)),
            ("access_key_id", ("access_key", "access_key_id", "aws_access_key_id")),
            ("secret_access_key", ("secret_key", "secret_access_key", "aws_secret_access_key")),
            ("session_token", ("session_token", "aws_session_token")),
        ):
            if (value := job.setting(*names)) is not None:
                config[name] = value
        return config


class GcsDriver(_Objects):
    """Google Cloud Storage, with the `service_account_key` or `service_account_json` (JSON).

    Without one the machine's identity is used; `none` sends no credentials, as emulators
    require.
    """

    scheme, _kind = "gs", GCSStore

    def _config(self, job: SinkJob) -> dict[str, str]:
        names = ("service_account_key", "service_account_json")
        key = next((job.secret[name] for name in names if job.secret.get(name)), None)
        endpoint = job.setting("endpoint")
        config: dict[str, str] = {}
        if key == "none":
            nobody = {"client_email": "", "private_key": "", "private_key_id": ""}
            place = {"gcs_base_url": endpoint or "", "disable_oauth": True}
            config["service_account_key"] = orjson.dumps({**nobody, **place}).decode()
        elif key is not None:
            config["service_account_key"] = key
        if endpoint is not None:
            config["base_url"] = endpoint
        return config


async def _release(_store: _Store) -> None:
    """Do nothing: a store is closed with its last reference."""


async def _remove(store: _Store, key: str, first: int) -> None:
    """Remove the parts from `first` on that a longer list left behind, in reverse."""
    end = first
    while await _is_there(store, numbered(key, end)):
        end += 1
    for number in reversed(range(first, end)):
        await obstore.delete_async(store, numbered(key, number))


async def _is_there(store: _Store, key: str) -> bool:
    try:
        await obstore.head_async(store, key)
    except (FileNotFoundError, PermissionDeniedError):  # write-only access
        return False
    return True


def _bucket(job: SinkJob) -> str:
    bucket = job.setting("bucket")
    if bucket is None:
        raise BadConfig(f"an {job.storage} sink needs a bucket, in `spec` or in its credential")
    return bucket


def _key(job: SinkJob) -> str:
    named = job.spec.get("key") or job.spec.get("path")
    own = f"{job.name}.{job.format}"
    if named is None:
        prefix = str(job.spec.get("prefix") or "").strip("/")
        return f"{prefix}/{own}" if prefix else own
    key = str(named)
    if key.startswith("/") or ".." in key.split("/") or "\0" in key or not key.strip():
        raise BadConfig(f"{key!r} is not a valid object name")
    return f"{key.strip('/')}/{own}" if job.mode == "append" else key


def _code(error: Exception) -> str:
    return type(error).__name__.removesuffix("Error").lower()


def _first_line(error: Exception) -> str:
    return concealed(str(error)).strip().partition("\n")[0][:300]
