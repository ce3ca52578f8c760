"""Kafka of the embedded stack: one KRaft node that is broker and controller."""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
import subprocess
from functools import partial

from streams.data_folder import Layout, write_private
from streams.local.class_archive import class_archive
from streams.local.errors import ServiceFailed
from streams.local.jars import Jars
from streams.local.java import Java
from streams.local.jvm import JAVA_ENVIRONMENT, JAVA_STOP_SECONDS, java_command, properties
from streams.local.ports import HOST
from streams.local.probe import kafka_answers
from streams.local.process import die_with_parent, last_lines
from streams.local.service import Service

_HEAP_MB = 640


def server_settings(layout: Layout, port: int, controller_port: int) -> dict[str, object]:
    """Return the settings of a single durable node."""
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": layout.kafka,
        # Topics are declared in topics/*.yaml; a misspelt name must not create one.
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        # After a kill the node can register again only when its old session has timed out.
        "broker.session.timeout.ms": 4000,
        "broker.heartbeat.interval.ms": 500,
        "log.cleaner.dedupe.buffer.size": 32 * 2**20,
        # Clients connect anew while the broker is paused. With the default of 50 their last
        # attempt would be dropped by the kernel, and repeated only up to 16 s after its return.
        "socket.listen.backlog.size": 4096,
    }


def kafka_service(
    layout: Layout, java: Java, jars: Jars, port: int, controller_port: int
) -> Service:
    """Return the broker's service; its storage is formatted before the first start."""
    config = layout.config / "kafka.properties"
    write_private(config, properties(server_settings(layout, port, controller_port)))

    async def before() -> None:
        if not (layout.kafka / "meta.properties").exists():
            await asyncio.to_thread(_format, layout, java, jars)

    bootstrap, main = f"{HOST}:{port}", "kafka.Kafka"
    archive = class_archive(java, jars.lib, main, layout.config / "kafka.jsa")
    return Service(
        name="kafka",
        version=jars.version("kafka_2.13"),
        address=bootstrap,
        command=java_command(
            java, [jars.lib], main, str(config), heap_mb=_HEAP_MB, archive=archive
        ),
        log=layout.log("kafka"),
        ready=kafka_answers(bootstrap),
        environment=JAVA_ENVIRONMENT,
        before=before,
        after=partial(asyncio.to_thread, archive.adopt),
        stop_seconds=JAVA_STOP_SECONDS,
    )


def _format(layout: Layout, java: Java, jars: Jars) -> None:
    """Format the storage with Kafka's tool.

    Writing the file directly would be a second faster, but omit the feature levels, and with
    them the newer transaction protocol.
    """
    cluster_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
    # An id that begins with a dash would be parsed as an option.
    arguments = (
        "format",
        f"--cluster-id={cluster_id}",
        "-c",
        str(layout.config / "kafka.properties"),
    )
    command = java_command(
        java, [jars.lib], "kafka.tools.StorageTool", *arguments, heap_mb=256, brief=True
    )
    with layout.log("kafka-format").open("wb") as log:
        done = subprocess.run(
            command,
            check=False,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **JAVA_ENVIRONMENT},
            preexec_fn=die_with_parent(),
        )
    if done.returncode != 0:
        path = layout.log("kafka-format")
        raise ServiceFailed("kafka", "could not format its storage", path, last_lines(path))
