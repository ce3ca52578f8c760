"""Publication of pinned schemas to a registry, with the same ids or not at all.

1. plan     read the registry: existing, missing, obstacles
2. refuse   obstacles end it here, before the first change
3. import   by the registry's own way of taking ids over (Confluent's IMPORT mode,
            Apicurio's import of an archive); a registry with neither is refused
4. verify   plan again: nothing may be missing, because an import can fail in silence
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from streams.errors import Inconsistent, Refused
from streams.schema.avro_parse import BadSchema, parse
from streams.schema.publish_apicurio import ApicurioImport
from streams.schema.publish_confluent import ConfluentImport
from streams.schema.registration import Registration
from streams.schema.registry_external import RegistryClient
from streams.schema.released import PinnedSchema, fingerprint


class CannotPublish(Refused):
    """The registry cannot assign the ids that the log already contains."""

    def __init__(self, url: str, reasons: Sequence[str]) -> None:
        super().__init__(
            f"schema registry {url} cannot take the log's schema ids over: {'; '.join(reasons)}. "
            "Nothing was changed. Use an empty registry or one where these ids are free, "
            "or stay with serialization.schema_registry.backend: file"
        )
        self.reasons = tuple(reasons)


class PublishIncomplete(Inconsistent):
    """The registry accepted the import but lacks some of it."""

    def __init__(self, url: str, problems: Sequence[str]) -> None:
        super().__init__(
            f"schema registry {url} accepted the import, but {'; '.join(problems)}. "
            "Check its log, and do not point readers at it before a second "
            "`streams schemas publish` succeeds"
        )
        self.problems = tuple(problems)


class RegistryImport(Protocol):
    """Imports schemas with their ids into one kind of registry."""

    async def obstacles(self, wanted: Sequence[Registration]) -> Sequence[str]:
        """Return what this kind of registry would reject or get wrong, changing nothing."""
        ...

    async def load(self, wanted: Sequence[Registration], newest: Mapping[str, int]) -> None:
        """Register all of `wanted`; `newest` is each subject's last version."""
        ...


@dataclass(frozen=True, slots=True)
class Publication:
    """Registrations added (or to add), and those that existed."""

    registry: str
    added: tuple[Registration, ...]
    present: tuple[Registration, ...]


async def publish_to(
    url: str,
    pins: Sequence[PinnedSchema],
    subjects: Mapping[str, Sequence[str]],
    *,
    dry_run: bool = False,
) -> Publication:
    """Register every pin under the subjects of its record, in the registry at `url`.

    Raises:
        CannotPublish: it cannot assign the same ids; nothing was changed.
        PublishIncomplete: it accepted the import but lacks some of it.
        Unavailable: it cannot be reached.
    """
    async with aiohttp.ClientSession() as session:
        client = RegistryClient(url, session)
        wanted = _wanted(pins, subjects)
        plan, in_the_way = await _plan(client, wanted)
        if in_the_way:
            raise CannotPublish(client.url, in_the_way)
        if plan.added:
            way_in = await _way_in(client, plan.added)
            if not dry_run:
                newest = {one.subject: one.version for one in sorted(wanted, key=_version)}
                await way_in.load(plan.added, newest)
                await _verify(client, wanted)
        return plan


async def _verify(client: RegistryClient, wanted: Sequence[Registration]) -> None:
    after, in_the_way = await _plan(client, wanted)
    lacking = [f"{one.subject} version {one.version} is missing" for one in after.added]
    if lacking or in_the_way:
        raise PublishIncomplete(client.url, [*in_the_way, *lacking])


def _version(one: Registration) -> int:
    return one.version


def _wanted(
    pins: Sequence[PinnedSchema], subjects: Mapping[str, Sequence[str]]
) -> list[Registration]:
    return [
        Registration(subject, pin.version, pin.schema_id, pin.schema)
        for pin in pins
        for subject in subjects.get(pin.name, ())
    ]


async def _plan(
    client: RegistryClient, wanted: Sequence[Registration]
) -> tuple[Publication, list[str]]:
    """Compare the wanted registrations with the registry, and return obstacles."""
    reasons: list[str] = []
    for schema_id, schema in {one.schema_id: one.schema for one in wanted}.items():
        found = await client.schema(schema_id)
        if found is not None and not _same(found, schema):
            reasons.append(f"id {schema_id} is taken by another schema")
    present: list[Registration] = []
    for subject in dict.fromkeys(one.subject for one in wanted):
        ours = {one.version: one for one in wanted if one.subject == subject}
        there = await client.versions(subject)
        gone = set(await client.versions(subject, deleted=True)) - set(there)
        reasons += [f"{subject} has a deleted version {one}: purge it" for one in sorted(gone)]
        for version in there:
            reason = await _compare(client, subject, version, ours.get(version))
            if reason is None:
                present.append(ours[version])
            else:
                reasons.append(reason)
    added = [one for one in wanted if one not in present]
    return Publication(client.url, tuple(added), tuple(present)), reasons


async def _compare(
    client: RegistryClient, subject: str, version: int, ours: Registration | None
) -> str | None:
    found = await client.version(subject, version)
    if ours is None:
        return (
            f"{subject} has a version {version} (id {found.schema_id}) that was not released here"
        )
    if found.schema_id != ours.schema_id:
        return f"{subject} version {version} has id {found.schema_id}, not {ours.schema_id}"
    if not _same(found.schema, ours.schema):
        return f"{subject} version {version} holds another schema"
    return None


async def _way_in(client: RegistryClient, missing: Sequence[Registration]) -> RegistryImport:
    """Detect the kind of registry, and check that it can import the missing ones."""
    way_in: RegistryImport | None = await ApicurioImport.detect(client)
    if way_in is None:
        way_in = await ConfluentImport.detect(client)
    if way_in is None:
        raise CannotPublish(client.url, ["it has neither Confluent's modes nor Apicurio's import"])
    obstacles = await way_in.obstacles(missing)
    if obstacles:
        raise CannotPublish(client.url, obstacles)
    return way_in


def _same(one: str, other: str) -> bool:
    """Return whether two schemas are equal in canonical form: registries reformat them."""
    try:
        return fingerprint(one) == fingerprint(other) or parse(one) == parse(other)
    except (BadSchema, ValueError):
        return False
