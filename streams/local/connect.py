"""Kafka Connect of the embedded stack: one distributed worker with Debezium's plugins."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from streams.data_folder import Layout, write_private
from streams.local.class_archive import class_archive
from streams.local.jars import Jars
from streams.local.java import Java
from streams.local.jvm import JAVA_ENVIRONMENT, JAVA_STOP_SECONDS, java_command, properties
from streams.local.ports import HOST
from streams.local.probe import http_answers
from streams.local.service import Service

_HEAP_MB = 1024
_DEBEZIUM = "debezium-connector-postgres"
# AWS's client would send checksums in trailers, which rclone stores as content.
_S3_CHECKSUMS = {
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
}
_PROVIDERS = "org.apache.kafka.common.config.provider"


@dataclass(frozen=True, slots=True)
class FullJars:
    """What the profile `full` adds: the JDBC sink with its converter, and the Iceberg sink."""

    sinks: Jars
    lake: Jars


def worker_settings(layout: Layout, plugins: Path, bootstrap: str, port: int) -> dict[str, object]:
    """Return the worker's settings; `service_load` avoids a scan of all classes."""
    secrets = layout.connect_secrets
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "noetl.connect",
        # There is one broker with a fixed address. The default strategy re-bootstraps ten
        # times a second while Kafka starts, each time with more calls.
        "metadata.recovery.strategy": "none",
        # Timeout for Kafka at startup; a busy machine may need more than a minute.
        "default.api.timeout.ms": 170_000,
        "listeners": f"http://{HOST}:{port}",
        "rest.advertised.host.name": HOST,
        "rest.advertised.port": port,
        "exactly.once.source.support": "enabled",
        "config.storage.topic": "noetl.connect.configs",
        "offset.storage.topic": "noetl.connect.offsets",
        "status.storage.topic": "noetl.connect.status",
        "config.storage.replication.factor": 1,
        "offset.storage.replication.factor": 1,
        "status.storage.replication.factor": 1,
        "offset.storage.partitions": 1,
        "status.storage.partitions": 1,
        # A sink's lag is only as fresh as its committed offsets.
        "offset.flush.interval.ms": 5000,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "plugin.discovery": "service_load",
        "plugin.path": plugins,
        # A single worker need not wait for others before it takes its tasks again.
        "scheduled.rebalance.max.delay.ms": 0,
        "connector.client.config.override.policy": "All",
        "config.providers": "file,directory",
        "config.providers.file.class": f"{_PROVIDERS}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": secrets,
        "config.providers.directory.class": f"{_PROVIDERS}.DirectoryConfigProvider",
        "config.providers.directory.param.allowed.paths": secrets,
    }


def connect_service(
    layout: Layout, java: Java, jars: Jars, more: FullJars | None, bootstrap: str, port: int
) -> Service:
    """Return the worker's service; it starts in parallel with Kafka and retries."""
    plugins = _link_plugins(layout.config / "plugins", jars, more)
    config = layout.config / "connect.properties"
    write_private(config, properties(worker_settings(layout, plugins, bootstrap, port)))
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    url = f"http://{HOST}:{port}"
    archive = class_archive(java, jars.lib, main, layout.config / "connect.jsa")
    return Service(
        name="connect",
        version=f"{jars.version('connect-runtime')} (Debezium {jars.version(_DEBEZIUM)})",
        address=url,
        command=java_command(
            java, [jars.lib], main, str(config), heap_mb=_HEAP_MB, archive=archive
        ),
        log=layout.log("connect"),
        ready=http_answers(f"{url}/health"),
        environment={**JAVA_ENVIRONMENT, **_S3_CHECKSUMS},
        needs=("kafka", "postgres"),
        waits=False,
        after=partial(asyncio.to_thread, archive.adopt),
        start_seconds=180.0,
        stop_seconds=JAVA_STOP_SECONDS,
    )


def _link_plugins(folder: Path, jars: Jars, more: FullJars | None) -> Path:
    """Link each plugin of the profile into the plugin folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    (folder / _DEBEZIUM).symlink_to(jars.unpacked(_DEBEZIUM) / _DEBEZIUM)
    if more is not None:
        jdbc = "debezium-connector-jdbc"
        (folder / jdbc).symlink_to(more.sinks.unpacked(jdbc) / jdbc)
        (folder / "apicurio-converter").symlink_to(more.sinks.lib)
        (folder / "iceberg").symlink_to(more.lake.lib)
    return folder
