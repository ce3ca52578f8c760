"""What a decision still needs before it can be made; the shell finds it and asks again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streams.events.model import PayloadRef


class NeedsPayload(Exception):
    """A value behind this reference decides; load it."""

    def __init__(self, ref: PayloadRef) -> None:
        super().__init__(ref.uri)
        self.ref = ref


class NeedsResult(NeedsPayload):
    """A template reads the data of a result; load it, or say why it cannot be had."""


class NeedsPlaybook(Exception):
    """A step calls this playbook; look it up."""

    def __init__(self, path: str, version: int | None) -> None:
        super().__init__(path)
        self.path, self.version = path, version


class NeedsManifest(Exception):
    """Rows of this stage are read later; say which payloads hold them."""

    def __init__(self, stage_id: int) -> None:
        super().__init__(str(stage_id))
        self.stage_id = stage_id


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for the data of a result that cannot be had, or is too large to be."""

    why: str


def name_of(ref: PayloadRef) -> str:
    """Return what a value is known by: whose it is, its content, and how that is read."""
    return f"{ref.media_type} {ref.uri}"


@dataclass(frozen=True, slots=True)
class Known:
    """What the shell has found so far: payloads by `name_of`, playbooks by path and version.

    A playbook that does not exist is a text that says so.
    """

    payloads: Mapping[str, Any] = field(default_factory=dict)
    playbooks: Mapping[tuple[str, int | None], tuple[int, int] | str] = field(default_factory=dict)
    manifests: Mapping[int, bytes] = field(default_factory=dict)

    def payload(self, ref: PayloadRef) -> Any:
        """Return the value behind `ref`.

        Raises:
            NeedsPayload: it was not loaded yet.
        """
        if (name := name_of(ref)) not in self.payloads:
            raise NeedsPayload(ref)
        return self.payloads[name]

    def having(self, ref: PayloadRef, value: Any) -> Known:
        """Return what is known with a value that is stored only with the decision."""
        return replace(self, payloads={**self.payloads, name_of(ref): value})

    def result(self, ref: PayloadRef) -> Any:
        """Return the data of a result, or `Unreadable`.

        Raises:
            NeedsResult: it was not loaded yet.
        """
        if (name := name_of(ref)) not in self.payloads:
            raise NeedsResult(ref)
        return self.payloads[name]

    def manifest(self, stage_id: int) -> bytes:
        """Return the manifest of a stage whose frames have all ended.

        Raises:
            NeedsManifest: it was not made yet.
        """
        if stage_id not in self.manifests:
            raise NeedsManifest(stage_id)
        return self.manifests[stage_id]

    def playbook(self, path: str, version: int | None) -> tuple[int, int] | str:
        """Return the catalog id and version, or why there is none.

        Raises:
            NeedsPlaybook: it was not looked up yet.
        """
        if (path, version) not in self.playbooks:
            raise NeedsPlaybook(path, version)
        return self.playbooks[(path, version)]
