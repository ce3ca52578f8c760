"""Validation of trigger records; all problems are reported at once. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from streams.errors import PoisonRecord
from streams.events.limits import MAX_KEY_CHARS, MAX_NAME_CHARS, MAX_SEGMENT_CHARS
from streams.events.locator import BadLocator, Locator
from streams.events.model import Json
from streams.events.text import UNSTORABLE_OR_CONTROL
from streams.kafka.feed.port import Record
from streams.kafka.names import NAMESPACE

KEY_HEADER = "idempotency-key"
"""Header with the idempotency key if the body has none; else the Kafka key is used."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_TEXTS = {
    "path": MAX_KEY_CHARS,
    "key": MAX_KEY_CHARS,
    "tenant": MAX_NAME_CHARS,
    "organization": MAX_NAME_CHARS,
    "reply_to": MAX_NAME_CHARS,
    "correlation_id": MAX_KEY_CHARS,
}
_OWNERS = ("tenant", "organization")
_FIELDS = (*_TEXTS, "version", "workload")


class BadTrigger(PoisonRecord):
    """A record that can never start an execution; `problems` has every reason."""

    def __init__(self, problems: tuple[str, ...], *, tenant: str, organization: str) -> None:
        super().__init__("; ".join(problems))
        self.problems, self.tenant, self.organization = problems, tenant, organization


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A valid record: start this playbook with this workload."""

    path: str
    tenant: str
    organization: str
    version: int | None = None
    """None means the newest version at the time of the start."""
    workload: Mapping[str, Json]
    key: str | None = None
    """One execution per tenant and key; None: topic, partition and offset identify it."""
    reply_to: str | None = None
    correlation_id: str | None = None
    window_s: int | None = None
    """How long the key counts; None: for ever."""
    pool: str | None = None
    """The pool of steps that name none; None: the playbook's."""
    subscription: str | None = None
    """The subscription whose message this is."""
    trace: str | None = None


def read_json(value: bytes | None) -> dict[str, Json]:
    """Return the fields of a plain JSON record.

    Raises:
        ValueError: it is not one; the message says why.
    """
    if not value:
        raise ValueError("the record has no value; it must be a JSON object with `path`")
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the value is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError(f"the value is a JSON {type(fields).__name__}, not an object")
    return fields


def understand(
    record: Record, fields: Mapping[str, Any], *, tenant: str, organization: str
) -> Request:
    """Return the request in the `fields` of `record`; tenant and organization are defaults.

    Raises:
        BadTrigger: with every problem found, and the record's apparent owner.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    problems = list(_problems(given))
    key = given.get("key")
    if key is None:
        try:
            key = _outer_key(record)
        except ValueError as error:
            problems.append(str(error))
    whose = {
        "tenant": _owner(given.get("tenant"), tenant),
        "organization": _owner(given.get("organization"), organization),
    }
    if problems:
        raise BadTrigger(tuple(problems), **whose)
    return Request(
        path=given["path"],
        version=given.get("version"),
        workload=given.get("workload", {}),
        key=key,
        reply_to=given.get("reply_to"),
        correlation_id=given.get("correlation_id"),
        tenant=whose["tenant"],
        organization=whose["organization"],
    )


def _owner(value: object, default: str) -> str:
    """Return the record's owner, also of a bad record if it names one."""
    return value if isinstance(value, str) and _names(value) else default


def _problems(given: Mapping[str, Any]) -> Iterator[str]:
    for name in given:
        if name not in _FIELDS:
            yield f"{name}: unknown; a trigger has {', '.join(sorted(_FIELDS))}"
    if "path" not in given:
        yield "path: missing; it names the playbook to start"
    for name, limit in _TEXTS.items():
        if name in given and not (isinstance(given[name], str) and _fits(given[name], limit)):
            yield f"{name}: must be text of 1 to {limit} characters without control characters"
        elif name in _OWNERS and name in given and not _names(given[name]):
            yield (
                f"{name}: {given[name]!r} is not valid: it must not be '.' or '..', nor have "
                f"more than {MAX_SEGMENT_CHARS} characters when percent-encoded"
            )
    version = given.get("version", 1)
    if type(version) is not int or not 0 < version < 2**31:
        yield f"version: is {version!r}, not a positive whole number"
    workload = given.get("workload", {})
    if not isinstance(workload, dict):
        yield f"workload: is a {type(workload).__name__}, not an object"
    yield from _reply_problems(given.get("reply_to"))


def _reply_problems(reply_to: object) -> Iterator[str]:
    if not isinstance(reply_to, str):
        return
    if reply_to.startswith(NAMESPACE):
        yield f"reply_to: {reply_to} is one of the system's own topics; name one of yours"
    elif not _TOPIC.fullmatch(reply_to) or reply_to in (".", ".."):
        yield f"reply_to: {reply_to!r} is not a valid topic name"


def _outer_key(record: Record) -> str | None:
    """Return the idempotency key outside the body: the header's, else the Kafka key."""
    header = next((value for name, value in record.headers if name == KEY_HEADER), None)
    for source, raw in (("header " + KEY_HEADER, header), ("the record's Kafka key", record.key)):
        if not raw:
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(
                f"{source}: is not UTF-8, so it cannot be an idempotency key"
            ) from None
        if not _fits(text, MAX_KEY_CHARS):
            raise ValueError(
                f"{source}: must be 1 to {MAX_KEY_CHARS} characters without control characters"
            )
        return text
    return None


def _fits(text: str, limit: int) -> bool:
    return 0 < len(text) <= limit and not UNSTORABLE_OR_CONTROL.search(text)


def _names(text: str) -> bool:
    """Return whether a tenant or organization is valid in payload paths."""
    try:
        place = str(Locator(text))
    except BadLocator:
        return False
    length = len(place) - len(str(Locator("x"))) + 1
    return _fits(text, MAX_NAME_CHARS) and length <= MAX_SEGMENT_CHARS
