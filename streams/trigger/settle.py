"""Assignment of roots to the records of a batch, given known records and keys. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streams.trigger.port import Entered, LedgerEntry, Origin

Key = tuple[str, str]
"""A tenant and its idempotency key."""


def key_of(entry: LedgerEntry) -> Key | None:
    """Return the idempotency key of the entry's execution, if any."""
    return None if entry.key is None else (entry.event.tenant_id, entry.key)


def wanted_keys(entries: Sequence[LedgerEntry]) -> dict[Key, int]:
    """Return the execution that each key should get: that of its first record."""
    wanted: dict[Key, int] = {}
    for entry in entries:
        if (key := key_of(entry)) is not None:
            wanted.setdefault(key, entry.event.root.id)
    return dict(sorted(wanted.items()))


def settle(
    entries: Sequence[LedgerEntry], known: Mapping[Origin, Entered], held: Mapping[Key, int]
) -> list[Entered]:
    """Return the ledger's result for each entry.

    `known` has the records that were entered before, `held` the execution of every key.
    """
    answers: list[Entered] = []
    by_origin = dict(known)
    for entry in entries:
        answer = by_origin.get(entry.origin)
        if answer is None:
            answer = _fresh(entry, held)
            by_origin[entry.origin] = Entered(
                entry.origin, answer.execution_id, answer.rejected_id, is_new=False
            )
        answers.append(answer)
    return answers


def _fresh(entry: LedgerEntry, held: Mapping[Key, int]) -> Entered:
    root_id = entry.event.root.id
    if entry.event.root.type == "trigger":
        return Entered(entry.origin, rejected_id=root_id, is_new=True)
    key = key_of(entry)
    execution_id = root_id if key is None else held[key]
    return Entered(entry.origin, execution_id=execution_id, is_new=execution_id == root_id)
