"""The tool of `sink:` blocks: resolves credential and driver, and writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points

from streams.playbook.sinks.storages import DRIVERS, STORAGES, missing
from streams.playbook.yaml_document import as_list
from streams.worker.errors import BadConfig, UnknownCredential
from streams.worker.port import Call, Config, Outcome
from streams.worker.sinks.port import Driver, SinkEnvironment, SinkJob, SinkRefused
from streams.worker.tools.task_config import failed, mapping, seconds, whole

_OURS: Mapping[str, str] = {
    "event_log": "event_log:EventLogDriver",
    "file": "file:FileDriver",
    "s3": "object_store:S3Driver",
    "gcs": "object_store:GcsDriver",
    "duckdb": "duckdb:DuckdbDriver",
    "kv.redis": "redis:RedisDriver",
    "graph.neo4j": "neo4j:Neo4jDriver",
    "graph.ladybug": "ladybug:LadybugDriver",
    "bigquery": "bigquery:BigqueryDriver",
    "snowflake": "snowflake:SnowflakeDriver",
}
Make = Callable[[SinkEnvironment], Driver]


class SinkTool:
    """Runs the task that a `sink:` block was compiled into."""

    def __init__(self, around: SinkEnvironment) -> None:
        self._around = around
        self._drivers: dict[str, Driver] = {}

    async def run(self, config: Config, call: Call) -> Outcome:
        """Persist one value and return the reference to it.

        Raises:
            TargetUnavailable: the storage cannot be reached.
        """
        storage = str(config.get("storage"))
        try:
            job = await self._job(storage, config, call)
            driver = self._driver(storage, _driver_name(job, str(config.get("driver") or "")))
            async with asyncio.timeout(seconds(job.spec, call, None)):
                reference = await driver.write(job)
        except (BadConfig, UnknownCredential) as error:
            return failed(f"{storage}.config", str(error))
        except SinkRefused as error:
            return failed(f"{storage}.{error.code}", str(error))
        except TimeoutError:
            return failed(f"{storage}.timeout", "the storage timed out")
        except OSError as error:
            return failed(f"{storage}.os", str(error))
        except (ValueError, TypeError, ArithmeticError, NotImplementedError) as error:
            return failed(f"{storage}.value", f"a value cannot be written: {error}")
        return Outcome(status="success", data=dict(reference))

    async def close(self) -> None:
        """Close every driver that was used."""
        for driver in self._drivers.values():
            await driver.close()
        self._drivers.clear()

    def _driver(self, storage: str, driver: str) -> Driver:
        name = f"{storage}.{driver}" if driver and driver != storage else storage
        if (found := self._drivers.get(name)) is None:
            found = self._drivers[name] = _factory(storage, driver, name)(self._around)
        return found

    async def _job(self, storage: str, config: Config, call: Call) -> SinkJob:
        secret: Mapping[str, str] = {}
        if (auth := config.get("auth")) is not None:
            find = self._around.credentials.find
            secret = await find(call.tenant_id, call.organization_id, str(auth))
        table, statement = config.get("table"), config.get("statement")
        return SinkJob(
            storage=storage,
            mode=str(config.get("mode") or ""),
            call=call,
            deployment=self._around.deployment,
            data=config.get("data"),
            is_given=bool(config.get("is_given", True)),
            table=None if table is None else str(table),
            key=tuple(map(str, as_list(config.get("key")))),
            statement=None if statement is None else str(statement),
            params=mapping(config, "params"),
            spec=mapping(config, "spec"),
            format=str(config.get("format") or "json"),
            chunk_size=whole(config, "chunk_size") if config.get("batch", True) else 1,
            concurrency=whole(config, "concurrency") or 1,
            secret=secret,
        )


def _driver_name(job: SinkJob, usual: str) -> str:
    """Return the driver's name, from the block or else from the credential."""
    if "driver" in job.spec or "driver" not in STORAGES[job.storage].spec:
        return usual
    return job.secret.get("driver") or usual


def _factory(storage: str, driver: str, name: str) -> Make:
    """Return the driver's factory.

    Raises:
        BadConfig: the driver, or a package it needs, is not installed.
    """
    for entry in entry_points(group=DRIVERS):
        if entry.name == f"{storage}.{driver}":
            made: Make = entry.load()
            return made
    if (why := missing(storage, driver)) is not None:
        raise BadConfig(why)
    if name not in _OURS:
        raise BadConfig(f"unknown storage {name!r}; known are {', '.join(_OURS)}")
    module, _, kind = _OURS[name].partition(":")
    driver_class: Make = getattr(import_module(f"streams.worker.sinks.{module}"), kind)
    return driver_class
