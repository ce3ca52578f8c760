"""Resource locators and result URIs (docs/locator.md).

A locator is a join key, so a value has exactly one spelling: parsing rejects text that differs
from the formatted value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self
from urllib.parse import quote, unquote

from streams.errors import Refused
from streams.segments import PLAIN, wrong_segment

SCHEME = "noetl://"
MAX_LENGTH = 2048
LEVELS = ("tenant", "org", "cluster", "region", "zone", "node", "process")

# The parent of each level; a region is optional, because a node's name is enough.
_PARENTS = {
    "org": "tenant",
    "cluster": "org",
    "region": "cluster",
    "zone": "region",
    "node": "cluster",
    "process": "node",
}
_NOWHERE = ("none", "none", "none")  # no zone, no node, no process
_NOT_KINDS = frozenset({*LEVELS, "execution", "none"})
_KIND = re.compile(r"[a-z][a-z0-9_-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_EXECUTION = (1 << 63) - 1


class BadLocator(Refused):
    """Text, or parts, that are not a valid locator."""

    def __init__(self, part: str, why: str, text: str | None = None) -> None:
        subject = "locator" if text is None else f"locator {text[:200]!r}"
        super().__init__(f"bad {subject}: {part} {why}")
        self.part, self.why, self.text = part, why, text


@dataclass(frozen=True, slots=True)
class Locator:
    """An addressable resource.

    Without a kind it names a level itself: a tenant, an organization, a cluster, a node.
    """

    tenant: str
    org: str | None = None
    cluster: str | None = None
    region: str | None = None
    zone: str | None = None
    node: str | None = None
    process: str | None = None
    kind: str | None = None
    id: tuple[str, ...] = ()
    _text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_place()
        self._check_thing()
        object.__setattr__(self, "_text", _join(self._segments()))

    @classmethod
    def payload(cls, tenant: str, org: str, sha256: str) -> Self:
        """Return the locator of a payload, which does not depend on where it is stored."""
        return cls(tenant, org, kind="payloads", id=("sha256", sha256))

    def thing(self, kind: str, *id: str) -> Self:
        """Return the locator of a resource at the same level."""
        return replace(self, kind=kind, id=id)

    def __str__(self) -> str:
        return self._text

    def _check_place(self) -> None:
        for level in LEVELS:
            value = getattr(self, level)
            if value is None:
                continue
            outer = _PARENTS.get(level)
            if outer is not None and getattr(self, outer) is None:
                raise BadLocator(level, f"needs {'an' if outer == 'org' else 'a'} {outer}")

    def _check_thing(self) -> None:
        if self.kind is None:
            if self.id:
                raise BadLocator("id", "needs a kind")
            return
        if self.org is None:
            raise BadLocator("kind", "needs an org: every resource belongs to an organization")
        if self.kind in _NOT_KINDS or not _KIND.fullmatch(self.kind):
            raise BadLocator(
                "kind",
                f"{self.kind[:80]!r} must be a word of lower-case letters, digits, '-' and '_', "
                f"and none of {', '.join(sorted(_NOT_KINDS))}; levels come in the order "
                f"{', '.join(LEVELS)}",
            )
        if not self.id:
            raise BadLocator("id", f"is missing after the kind '{self.kind}'")
        if self.kind == "payloads":
            self._check_payload()

    def _check_payload(self) -> None:
        if self.cluster is not None:
            raise BadLocator("cluster", "does not belong to a payload: it is the same everywhere")
        if len(self.id) != 2 or self.id[0] != "sha256" or not _SHA256.fullmatch(self.id[1]):
            raise BadLocator(
                "id", "of a payload must be 'sha256' and 64 lower-case hexadecimal digits"
            )

    def _segments(self) -> Iterator[tuple[str, str]]:
        """Yield each segment with the name of the part it belongs to."""
        for level in LEVELS:
            value = getattr(self, level)
            if value is not None:
                yield level, level
                yield level, value
        if self.kind is None:
            return
        if self.region is not None and self.zone is None and self.node is None:
            yield from zip(("zone", "node", "process"), _NOWHERE, strict=True)
        yield "kind", self.kind
        for number, segment in enumerate(self.id, start=1):
            yield f"id segment {number}", segment


@dataclass(frozen=True, slots=True)
class ResultUri:
    """The result of a task of a step in an execution."""

    execution_id: int
    step: str
    task: str
    key: str
    _text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.execution_id <= _MAX_EXECUTION:
            raise BadLocator("execution", f"{self.execution_id} is not a positive 63-bit number")
        object.__setattr__(self, "_text", _join(self._segments()))

    def __str__(self) -> str:
        return self._text

    def _segments(self) -> Iterator[tuple[str, str]]:
        yield from (("execution", "execution"), ("execution", str(self.execution_id)))
        yield from (("step", "step"), ("step", self.step))
        yield from (("task", "task"), ("task", self.task), ("key", self.key))


@lru_cache(maxsize=4096)
def parse(text: str) -> Locator | ResultUri:
    """Parse a locator or result URI; `str` of the result equals `text`.

    Raises:
        BadLocator: it is neither, or not in its canonical spelling.
    """
    if len(text) > MAX_LENGTH:
        raise BadLocator("it", f"has {len(text)} characters, {MAX_LENGTH} are allowed", text)
    if not text.startswith(SCHEME):
        raise BadLocator("it", f"does not begin with {SCHEME}", text)
    raw = text[len(SCHEME) :].split("/")
    try:
        segments = [_decoded(segment, at) for at, segment in enumerate(raw, start=1)]
        value = _result(segments) if raw[0] == "execution" else _locator(segments)
    except BadLocator as error:
        raise BadLocator(error.part, error.why, text) from None
    if value._text != text:
        raise _misspelled(value, text)
    return value


def _locator(segments: list[str]) -> Locator:
    """Parse the levels in order, then the kind and its id."""
    if segments[0] != "tenant":
        raise BadLocator("segment 1", f"must be 'tenant' or 'execution', not {segments[0]!r}")
    place: dict[str, str] = {}
    at = 0
    for level in LEVELS:
        if at < len(segments) and segments[at] == level:
            if at + 1 == len(segments):
                raise BadLocator(f"segment {at + 1} ({level})", "has no value after it")
            place[level] = segments[at + 1]
            at += 2
    rest = segments[at:]
    if rest and "region" in place and not place.keys() & {"zone", "node", "process"}:
        if tuple(rest[:3]) != _NOWHERE or len(rest) == 3:
            raise BadLocator(
                f"segment {at + 1}",
                "must be 'zone', 'node', or 'none/none/none' before the kind of a resource "
                "that is in no zone",
            )
        rest = rest[3:]
    return Locator(**place, kind=rest[0] if rest else None, id=tuple(rest[1:]))


def _result(segments: list[str]) -> ResultUri:
    if len(segments) != 7 or segments[2] != "step" or segments[4] != "task":
        form = "execution/<id>/step/<name>/task/<label>/<key>"
        raise BadLocator("it", f"must have the form {SCHEME}{form}")
    number = segments[1]
    if not (number.isascii() and number.isdigit()) or len(number) > 19:
        raise BadLocator("segment 2 (execution)", f"{number[:80]!r} is not a positive number")
    return ResultUri(int(number), segments[3], segments[5], segments[6])


def _decoded(segment: str, at: int) -> str:
    """Decode percent-encoding; wrong encoding is detected by formatting again."""
    if not segment:
        raise BadLocator(f"segment {at}", "is empty")
    if "%" not in segment:
        return segment
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise BadLocator(f"segment {at}", "is not UTF-8 once its %XX are decoded") from None


def _join(segments: Iterator[tuple[str, str]]) -> str:
    text = SCHEME + "/".join([_encoded(value, part) for part, value in segments])
    if len(text) > MAX_LENGTH:
        raise BadLocator("it", f"has {len(text)} characters, {MAX_LENGTH} are allowed", text)
    return text


def _encoded(value: str, part: str) -> str:
    if (wrong := wrong_segment(value)) is not None:
        raise BadLocator(part, wrong)
    return value if PLAIN.fullmatch(value) else quote(value, safe="")


def _misspelled(value: Locator | ResultUri, text: str) -> BadLocator:
    """Return the error for the segment that is not in its canonical spelling."""
    pairs = zip(text.split("/")[2:], value._text.split("/")[2:], strict=True)
    at, given, meant = next((at, a, b) for at, (a, b) in enumerate(pairs, start=1) if a != b)
    return BadLocator(f"segment {at}", f"{given[:80]!r} must be written {meant[:240]!r}", text)
