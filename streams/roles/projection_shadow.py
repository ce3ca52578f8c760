"""Wiring of blue/green of projections: Postgres, the payload store, and replay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from streams.app import event_store_of, open_pool, open_registry, open_tiers
from streams.app.replay import business_queries_of, business_replay_of
from streams.catalog.texts import RegisteredTexts
from streams.clock import SystemClock
from streams.errors import Refused
from streams.events.codec import Codec
from streams.events.model import Json
from streams.log.postgres import PostgresEventStore
from streams.payload.port import Scope
from streams.projector.business.declared import Declared, declarations_of
from streams.projector.business.fold import BusinessFolds
from streams.projector.business.plugins import installed
from streams.projector.business.postgres import PostgresBusiness
from streams.projector.business.shadow.build import OnShadow, ShadowProgress, build_shadow
from streams.projector.business.shadow.core import VersionChange
from streams.projector.business.shadow.operations import ShadowOperations
from streams.projector.business.shadow.postgres import PostgresVersions
from streams.projector.heads import PostgresRootHeads
from streams.projector.outputs import Outputs
from streams.projector.postgres import PostgresProjections
from streams.replay.parity_versions import ReplayedVersionParity
from streams.settings import Settings


class NoDeclaration(Refused):
    """Nothing declares the version."""


class StoredElsewhere(Refused):
    """The projection is not in the database of the log."""


def scope_of(settings: Settings) -> Scope:
    """Return the scope whose projections are meant."""
    return Scope(settings.runtime.tenant_id, settings.runtime.organization_id)


@asynccontextmanager
async def open_operations(settings: Settings) -> AsyncIterator[ShadowOperations]:
    """Open the operations of the settings' scope.

    Raises:
        Unavailable: Postgres or the payload store cannot be reached.
    """
    limit_s = settings.runtime.call_limit_s
    dsn = settings.event_store.canonical_connection.dsn("project")
    async with (
        open_registry(settings) as registry,
        open_pool(dsn, limit_s=limit_s) as pool,
        open_tiers(settings, consumer="replay") as payloads,
    ):
        replay = business_replay_of(pool, await Codec.open(registry), settings, payloads)
        reader = PostgresBusiness(pool)
        is_required = settings.event_store.replay.require_projection_parity
        yield ShadowOperations(
            PostgresVersions(pool),
            reader,
            business_queries_of(pool),
            SystemClock(),
            scope_of(settings),
            parity=ReplayedVersionParity(replay, reader) if is_required else None,
        )


async def plan_shadow(
    settings: Settings, name: str, version: int, playbook: Path | None = None
) -> VersionChange:
    """Return what building a version would change; nothing is changed.

    `playbook`: the file that declares it; else executions or an installed package do.

    Raises:
        BadShadow: another version is in the way.
        StoredElsewhere: the projection is in a store of the settings.
        NoDeclaration: nothing declares it.
        Unavailable: Postgres cannot be reached.
    """
    _check_store(settings, name)
    dsn = settings.event_store.canonical_connection.dsn("project")
    async with open_pool(dsn, limit_s=settings.runtime.call_limit_s) as pool:
        return await _plan(settings, pool, name, version, playbook)


async def run_build(
    settings: Settings,
    name: str,
    version: int,
    playbook: Path | None = None,
    report: OnShadow | None = None,
) -> ShadowProgress:
    """Register a version, fold it for every execution, and declare it complete.

    Raises:
        BadShadow: another version is in the way.
        StoredElsewhere: the projection is in a store of the settings.
        NoDeclaration: nothing declares it.
        Unavailable: Postgres or the payload store cannot be reached; run it again.
    """
    _check_store(settings, name)
    dsn, scope = settings.event_store.canonical_connection.dsn("project"), scope_of(settings)
    async with (
        open_registry(settings) as registry,
        open_pool(dsn, limit_s=settings.runtime.call_limit_s) as pool,
        open_tiers(settings, consumer="projector") as payloads,
    ):
        await PostgresVersions(pool).change(await _plan(settings, pool, name, version, playbook))
        codec = await Codec.open(registry)
        log = event_store_of(PostgresEventStore(None, pool, codec), pool, codec, settings)
        stored = PostgresBusiness(pool)
        declared = Declared(RegisteredTexts(log, payloads), installed(), stored)
        done = await build_shadow(
            PostgresRootHeads(pool),
            log,
            PostgresProjections(pool, settings.payload_store.location),
            BusinessFolds(log, Outputs(payloads), declared, stored),
            declared,
            scope=scope,
            projection=name,
            report=report,
        )
        versions = await _operations(pool, scope).versions(name)
        await PostgresVersions(pool).change(versions.built(SystemClock().now()))
    return done


def _check_store(settings: Settings, name: str) -> None:
    if (store := settings.stores_of_projections.get(name)) is not None:
        raise StoredElsewhere(
            f"projection {name!r} is in the store {store!r}, and versions are switched in the "
            f"database of the log only; set `materializations.{name}.store: default`, or give the "
            "new version another name"
        )


async def _plan(
    settings: Settings, pool: asyncpg.Pool, name: str, version: int, playbook: Path | None
) -> VersionChange:
    scope = scope_of(settings)
    listed = await PostgresBusiness(pool).projections(scope)
    versions = await _operations(pool, scope).versions(name)
    if playbook is not None:
        declaration = _declared_in(playbook, name, version)
    else:
        known = [one.declaration for one in listed if (one.name, one.version) == (name, version)]
        known += [one.declaration for one in versions.all if one.version == version]
        known += [
            one.describe() for one in installed() if (one.name, one.version) == (name, version)
        ]
        if not known:
            raise NoDeclaration(
                f"projection {name!r} version {version}: no execution and no installed package "
                "declares it; give the file of a playbook that does: --playbook FILE"
            )
        declaration = known[0]
    return versions.build(declaration, version, listed, SystemClock().now())


def _operations(pool: asyncpg.Pool, scope: Scope) -> ShadowOperations:
    reader = PostgresBusiness(pool)
    queries = business_queries_of(pool)
    return ShadowOperations(
        PostgresVersions(pool), reader, queries, SystemClock(), scope, parity=None
    )


def _declared_in(file: Path, name: str, version: int) -> Mapping[str, Json]:
    try:
        found = declarations_of(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{file}: cannot be read: {error}; give a file of UTF-8 text") from error
    for one in found:
        if (one.name, one.version) == (name, version):
            return one.to_json()
    listed = ", ".join(f"{one.name} version {one.version}" for one in found) or "none"
    raise NoDeclaration(
        f"{file} does not declare projection {name!r} version {version}; it declares {listed} "
        "(`streams playbook check` reports incomplete declarations)"
    )
