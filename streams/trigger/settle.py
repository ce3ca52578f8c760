"""Assignment of roots to the records of a batch, given known records and keys. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streams.trigger.port import Entered, LedgerEntry, Origin, PartlyEntered


@dataclass(frozen=True, slots=True, order=True)
class IdempotencyKey:
    """An idempotency key: of a tenant for ever, or of a subscription for a window."""

    owner: str
    """The tenant, or the subscription that reads the record."""
    text: str
    window_s: int = 0
    """0: for ever."""


def key_of(entry: LedgerEntry) -> IdempotencyKey | None:
    """Return the idempotency key of the entry's execution, if any."""
    if entry.key is None:
        return None
    if entry.window_s is None:
        return IdempotencyKey(entry.event.tenant_id, entry.key)
    return IdempotencyKey(entry.origin.reader, entry.key, entry.window_s)


def wanted_keys(entries: Sequence[LedgerEntry]) -> dict[IdempotencyKey, int]:
    """Return the execution that each key should get: that of its first record."""
    wanted: dict[IdempotencyKey, int] = {}
    for entry in entries:
        if (key := key_of(entry)) is not None:
            wanted.setdefault(key, entry.event.root.id)
    return dict(sorted(wanted.items()))


def settle(
    entries: Sequence[LedgerEntry],
    known: Mapping[Origin, Entered],
    held: Mapping[IdempotencyKey, int],
) -> list[Entered]:
    """Return the ledger's result for each entry.

    `known` has the records that were entered before, `held` the execution of every key.

    Raises:
        PartlyEntered: some records of a batch are known, others are not.
    """
    _check_batches(entries, known)
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


def created(
    entries: Sequence[LedgerEntry], answers: Sequence[Entered], known: Mapping[Origin, Entered]
) -> list[LedgerEntry]:
    """Return the entries whose events must be appended: one for each new root."""
    made: dict[int, LedgerEntry] = {}
    for entry, answer in zip(entries, answers, strict=True):
        if answer.is_new and entry.origin not in known:
            made.setdefault(entry.event.root.id, entry)
    return list(made.values())


def _check_batches(entries: Sequence[LedgerEntry], known: Mapping[Origin, Entered]) -> None:
    batches: dict[int, set[Origin]] = {}
    for entry in entries:
        batches.setdefault(entry.event.root.id, set()).add(entry.origin)
    for origins in batches.values():
        if (before := origins & known.keys()) and before != origins:
            raise PartlyEntered(frozenset(before))


def _fresh(entry: LedgerEntry, held: Mapping[IdempotencyKey, int]) -> Entered:
    root_id = entry.event.root.id
    if entry.event.root.type == "trigger":
        return Entered(entry.origin, rejected_id=root_id, is_new=True)
    key = key_of(entry)
    execution_id = root_id if key is None else held[key]
    return Entered(entry.origin, execution_id=execution_id, is_new=execution_id == root_id)
