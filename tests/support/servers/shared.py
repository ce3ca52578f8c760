"""The servers that tests run against: containers where a Docker engine answers, else embedded."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import yaml

from streams.app import ROLES
from streams.local.settings import stack_settings
from streams.local.stack import running
from streams.local.state import find_stack
from streams.settings import Settings, load

REPOSITORY = Path(__file__).resolve().parents[3]
COMPOSE = "docker-compose.kafka.yml"
# What the compose file publishes on this machine, with its documented development passwords.
COMPOSE_SETTINGS: Mapping[str, object] = {
    "event_store": {
        "connection": {"url": "127.0.0.1:9092"},
        "canonical_connection": {
            "port": 5432,
            "ssl_mode": "disable",
            "roles": {
                duty: {"user": f"noetl_{duty}", "password": "development-only"}
                for duty in ("owner", "append", "read", "mirror", "project", "collect")
            },
        },
    },
    "credentials": {
        "pg_local": {"dsn": "postgresql://noetl_author:development-only@127.0.0.1:5432/author"}
    },
    "connect": {"url": "http://127.0.0.1:8083", "secrets_dir": "/run/streams/secrets"},
    "serialization": {"schema_registry": {"url": "http://127.0.0.1:8081/apis/ccompat/v7"}},
    "payload_store": {
        "backend": "s3",
        "connection": {
            "endpoint": "http://127.0.0.1:9000",
            "bucket": "noetl-payloads",
            "access_key": "noetl",
            "secret_key": "development-only",
        },
        "encryption_at_rest": False,
    },
}


def docker_answers() -> bool:
    """Say whether there is a Docker engine to talk to."""
    # The client leaves its socket open when nobody answers, which pytest takes for a leak.
    if "DOCKER_HOST" not in os.environ and not Path("/var/run/docker.sock").exists():
        return False
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=5)
        try:
            return bool(client.ping())
        finally:
            client.close()
    except DockerException:
        return False


@asynccontextmanager
async def servers(data: Path) -> AsyncIterator[Settings]:
    """Run the servers for as long as the body runs; say in settings where they are.

    A stack that is up already is used when STREAMS_TEST_DATA names its folder, which
    spares the start while writing tests.
    """
    if kept := os.environ.get("STREAMS_TEST_DATA"):
        state = find_stack(Path(kept))
        assert state is not None, f"STREAMS_TEST_DATA names {kept}, but no stack is up there"
        yield load(env={}, stack=stack_settings(state)).settings
    elif docker_answers():
        with _containers():
            yield load(env={}, stack=COMPOSE_SETTINGS).settings
    else:
        async with running(data, profile="full", sinks=False) as state:
            yield load(env={}, stack=stack_settings(state)).settings


def embedded_folder(settings: Settings, run: Path) -> Path | None:
    """Return the folder of the embedded stack that a run with this temporary folder uses."""
    kept = os.environ.get("STREAMS_TEST_DATA")
    for folder in [Path(kept)] if kept else run.glob("stack*"):
        state = find_stack(folder)
        port = settings.event_store.canonical_connection.port
        if state is not None and state.postgres.port == port:
            return folder
    return None


@contextmanager
def _containers() -> Iterator[None]:
    from testcontainers.compose import DockerCompose

    asked = {"services": container_services(), "build": True, "wait": True}
    with DockerCompose(str(REPOSITORY), compose_file_name=COMPOSE, **asked):
        yield


def container_services() -> list[str]:
    """Return the services that tests need: no roles, which would work on the tests' log."""
    text = (REPOSITORY / COMPOSE).read_text(encoding="utf-8")
    roles = {f"{role}-0" for role in ROLES}
    return [name for name in yaml.safe_load(text)["services"] if name not in roles]
