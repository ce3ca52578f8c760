"""The services of a stack's profile and their dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Event

from streams.data_folder import Layout
from streams.local.connect import FullJars, connect_service
from streams.local.credential_keys import provide_keys
from streams.local.jars import cache_folder, provide_jars
from streams.local.java import find_java
from streams.local.kafka import kafka_service
from streams.local.ports import HOST, assign_ports
from streams.local.postgres import DATABASE, SUPERUSER, open_postgres_data, postgres_service
from streams.local.postgres_data import PostgresData
from streams.local.registry import registry_address, registry_service
from streams.local.s3 import BUCKET, REGION, s3_service
from streams.local.secrets import load_secrets
from streams.local.service import Service
from streams.local.state import (
    ConnectAddress,
    KafkaAddress,
    PostgresAddress,
    RegistryAddress,
    S3Address,
)

PROFILES = ("core", "full")
LISTENERS = ("postgres", "kafka", "kafka-controller", "connect", "s3", "registry")


@dataclass(frozen=True, slots=True)
class Assembly:
    """The services of a stack before its start, with their addresses."""

    services: tuple[Service, ...]
    postgres_data: PostgresData
    postgres: PostgresAddress
    kafka: KafkaAddress
    connect: ConnectAddress
    s3: S3Address
    registry: RegistryAddress


def assemble(
    layout: Layout,
    profile: str,
    asked_ports: Mapping[str, int],
    say: Callable[[str], None],
    stop: Event,
) -> Assembly:
    """Locate programs, choose ports, write configurations; start nothing.

    Fetching the jars may take minutes; setting `stop` aborts it.
    """
    java = find_java()
    provide = partial(provide_jars, cache=cache_folder(), say=say, stop=stop)
    jars = provide("core")
    more = FullJars(provide("full"), provide("lake")) if profile == "full" else None
    ports = assign_ports(layout, LISTENERS, asked_ports)
    secrets = load_secrets(layout)
    provide_keys(layout)
    postgres_data = open_postgres_data(layout)
    bootstrap = f"{HOST}:{ports['kafka']}"
    services = [
        postgres_service(layout, postgres_data, secrets, ports["postgres"]),
        kafka_service(layout, java, jars, ports["kafka"], ports["kafka-controller"]),
        connect_service(layout, java, jars, more, bootstrap, ports["connect"]),
        s3_service(layout, secrets, ports["s3"]),
    ]
    if more is not None:
        services.append(registry_service(layout, java, more.sinks, ports["registry"]))
    return Assembly(
        services=tuple(services),
        postgres_data=postgres_data,
        postgres=PostgresAddress(
            host=HOST,
            port=ports["postgres"],
            database=DATABASE,
            superuser=SUPERUSER,
            superuser_password=secrets.superuser_password,
            role_passwords=secrets.role_passwords,
        ),
        kafka=KafkaAddress(bootstrap),
        connect=ConnectAddress(f"http://{HOST}:{ports['connect']}", layout.connect_secrets),
        s3=S3Address(
            endpoint=f"http://{HOST}:{ports['s3']}",
            access_key=secrets.access_key,
            secret_key=secrets.secret_key,
            bucket=BUCKET,
            region=REGION,
        ),
        registry=registry_address(ports["registry"]) if more is not None else RegistryAddress(),
    )
