"""Parsed `spec.result`: where a task's result is stored, and for how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

from jsonpath_rfc9535 import JSONPathError, JSONPathQuery
from jsonpath_rfc9535 import compile as compile_path

from streams.errors import Refused
from streams.events.model import Json
from streams.playbook.draft import IDENTIFIER, PlaybookDraft
from streams.playbook.problem import Severity
from streams.playbook.views import RESERVED
from streams.playbook.yaml_document import Path

AUTO = "auto"
STORES = (
    *("memory", "kv", "disk", "object", "s3", "gcs"),
    *("db", "duckdb", "eventlog", "minio", "pvc"),
)
PLACES = ("object", "s3", "gcs", "minio")
"""Stores that are the payload store itself."""
SCOPES = ("step", "execution", "workflow", "permanent")
CODECS = ("none", "gzip", "zstd", "lz4")
LARGE = "s3"  # the default kind of the payload store for `auto`
INLINE_BYTES = 32 * 1024
"""Most bytes of a result in an event, whatever the author allows."""
PREVIEW_BYTES = 1024
MOST_PREVIEW_BYTES = 4096
"""Most bytes of a preview in an event, whatever the author allows."""
LONGEST_TTL = timedelta(days=365 * 1000)  # more would overflow datetime
KV_BYTES, OBJECT_BYTES = 1_000_000, 10_000_000
_TTL = re.compile(r"([0-9]{1,6})([smhdwy])")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}


class Unselectable(Refused):
    """A JSONPath cannot be evaluated on this data."""


@dataclass(frozen=True, slots=True)
class Selection:
    """One small field of a result, selected by a JSONPath."""

    name: str
    query: JSONPathQuery
    is_one: bool
    """Whether the path matches at most one value; otherwise the matches are a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPolicy:
    """Where a task's result is stored, for how long, and which fields stay inline."""

    kind: str = AUTO
    scope: str = "permanent"
    ttl: timedelta | None = None
    compression: Literal["gzip", "zstd", "lz4", "none"] | None = None
    """Compression; None: the payload store's default."""
    inline_max_bytes: int = INLINE_BYTES
    preview_max_bytes: int = PREVIEW_BYTES
    select: tuple[Selection, ...] = ()

    def store_of(
        self, byte_length: int, inline_bytes: int = INLINE_BYTES, large: str = LARGE
    ) -> str | None:
        """Return the store for a result of this size; None: inline in its event.

        `inline_bytes` is the deployment's limit for inline data, `large` the kind of its payload
        store. A result too large for `kv` becomes an object.
        """
        if self.kind == "eventlog" and byte_length <= inline_bytes:
            return None
        if self.kind == "kv" and byte_length >= KV_BYTES:
            return "object"
        if self.kind not in (AUTO, "eventlog"):
            return self.kind
        if byte_length <= min(self.inline_max_bytes, inline_bytes):
            return None
        if byte_length < KV_BYTES:
            return "kv"
        return "object" if byte_length < OBJECT_BYTES else large

    def place_of(self, byte_length: int, large: str = LARGE) -> str:
        """Return the store for a payload without inline data and copies."""
        if self.kind in PLACES:
            return self.kind
        return "object" if byte_length < OBJECT_BYTES else large

    def outside(self) -> ResultPolicy:
        """Return the policy with nothing inline."""
        if self.kind not in (AUTO, "eventlog"):
            return self
        return replace(self, kind=AUTO, inline_max_bytes=0)

    def extract(self, data: Json) -> dict[str, Json]:
        """Return the selected fields; one whose path does not match is omitted.

        Raises:
            Unselectable: the data is too deep for a path.
        """
        found: dict[str, Any] = {}
        for one in self.select:
            try:
                values = one.query.find(data).values()
            except (JSONPathError, RecursionError) as error:
                raise Unselectable(
                    f"select {one.name!r}: {error}; say where it is, not $.."
                ) from error
            if not one.is_one:
                found[one.name] = values
            elif values:
                found[one.name] = values[0]
        return found


USUAL = ResultPolicy(kind="object")
"""Policy of a result without `spec.result` that is too large for its event."""


def policy_of(
    draft: PlaybookDraft, spec: object, path: Path, *, reserved: frozenset[str] = RESERVED
) -> ResultPolicy | None:
    """Parse `spec.result` of a task, if any; selected fields cannot have `reserved` names."""
    given = spec.get("result") if isinstance(spec, dict) else None
    if not isinstance(given, dict):
        return None
    path = (*path, "spec", "result")
    store = given.get("store")
    if isinstance(store, str):
        store = {"kind": store}
    has_store, store = isinstance(store, dict), store if isinstance(store, dict) else {}
    ttl, is_permanent = _ttl(draft, store.get("ttl"), (*path, "store", "ttl"))
    usual = "execution" if has_store and not is_permanent else "permanent"
    if ttl is not None and store.get("scope") == "permanent":
        what = "sets an expiry for a result whose scope is permanent"
        draft.report((*path, "store", "ttl"), what, "leave one of the two out")
    if is_permanent and store.get("scope", "permanent") != "permanent":
        what = f"is permanent, but the result expires with its {store['scope']}"
        draft.report((*path, "store", "ttl"), what, "leave one of the two out", draft.new_error)
    inline_bytes = _number(given.get("inline_max_bytes"), INLINE_BYTES)
    if inline_bytes > INLINE_BYTES:
        what = f"an event carries at most {INLINE_BYTES} bytes of a result; larger ones are stored"
        draft.report((*path, "inline_max_bytes"), what, None, Severity.NOTE)
    codec = store.get("compression")
    return ResultPolicy(
        kind=str(store.get("kind", AUTO)),
        scope=str(store.get("scope", usual)),
        ttl=ttl,
        compression=codec if codec in CODECS else None,
        inline_max_bytes=inline_bytes,
        preview_max_bytes=_preview(draft, given.get("preview_max_bytes"), path),
        select=_selections(draft, given.get("select"), (*path, "select"), reserved),
    )


def report_ignored_by_put(
    draft: PlaybookDraft,
    kind: str,
    config: Mapping[str, object],
    policy: ResultPolicy | None,
    path: Path,
) -> None:
    """Report options that do not apply to `artifact put`, whose data is streamed."""
    if policy is None or kind not in ("artifact", "result") or config.get("action") != "put":
        return
    path = (*path, "spec", "result")
    if policy.kind not in (AUTO, *PLACES):
        what = f"what is put goes to the payload store, with no copy in {policy.kind}"
        draft.report((*path, "store", "kind"), what, "leave it out", Severity.WARNING)
    if policy.select:
        what = "nothing is selected from what is put"
        hint = "select it in the task that makes the data"
        draft.report((*path, "select"), what, hint, Severity.WARNING)


def report_hidden_by_label(
    draft: PlaybookDraft, label: str, policy: ResultPolicy | None, path: Path
) -> None:
    """Report a selected field with the name of its task, which hides it from other steps."""
    if policy is not None and label in [one.name for one in policy.select]:
        where = (*path, "spec", "result", "select")
        what = f"{label!r} is the label of the task, too: `STEP.{label}` is its result"
        draft.report(where, what, "choose another `as`", Severity.WARNING)


def _number(value: object, usual: int) -> int:
    return value if isinstance(value, int) else usual


def _preview(draft: PlaybookDraft, value: object, path: Path) -> int:
    asked = _number(value, PREVIEW_BYTES)
    if asked > MOST_PREVIEW_BYTES:
        what = f"a first look has at most {MOST_PREVIEW_BYTES} bytes"
        hint = f"write {MOST_PREVIEW_BYTES}, or select the fields that are needed"
        draft.report((*path, "preview_max_bytes"), what, hint, Severity.WARNING)
    return min(asked, MOST_PREVIEW_BYTES)


def _ttl(draft: PlaybookDraft, value: object, path: Path) -> tuple[timedelta | None, bool]:
    """Return the time to live, and whether it is `permanent`."""
    if value is None or value == "permanent":
        return None, value is not None
    found = _TTL.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        hint = "write 30m, 1h, 1d, 7d, 1y or permanent"
        draft.report(path, f"{value!r} is not a valid time to live", hint)
        return None, False
    ttl = int(found[1]) * _UNITS[found[2]]
    if not timedelta(0) < ttl <= LONGEST_TTL:
        hint = f"write at least 1s and at most {LONGEST_TTL // _UNITS['y']}y, or permanent"
        draft.report(path, f"{value!r} is not a valid time to live", hint)
        return None, False
    return ttl, False


def _selections(
    draft: PlaybookDraft, value: object, path: Path, reserved: frozenset[str]
) -> tuple[Selection, ...]:
    made: dict[str, Selection] = {}
    for place, one in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(one, Mapping) or not isinstance(one.get("path"), str):
            continue
        text, here = one["path"], (*path, place)
        name = str(one.get("as") or text.rpartition(".")[2])
        if not re.fullmatch(IDENTIFIER, name):
            draft.report(here, f"{name!r} is not a valid name in templates", "add `as` with a name")
        if name in reserved:
            draft.report(here, f"{name!r} means something else in templates", "choose another `as`")
        if name in made:
            draft.report(here, f"{name!r} is selected twice")
        try:
            query = compile_path(text if text.startswith("$") else f"$.{text}")
        except (JSONPathError, ArithmeticError, RecursionError) as error:
            draft.report((*here, "path"), f"is not a valid JSONPath: {error}", "write $.a.b[0]")
            continue
        made[name] = Selection(name, query, query.singular_query())
    return tuple(made.values())
