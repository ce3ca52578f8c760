"""Counting the topics against the log."""

from __future__ import annotations

from collections.abc import Iterable

from streams.events.model import Root
from streams.mirror.tally import MirrorTally, MirrorVerdict

A, B = Root("execution", 1), Root("execution", 2)


def judged(
    records: Iterable[tuple[Root, int]],
    heads: dict[Root, int],
    expired: dict[Root, int] | None = None,
) -> MirrorVerdict:
    tally = MirrorTally()
    for root, seq in records:
        tally.add(root, seq)
    return tally.against(heads, expired or {})


def test_each_event_once_and_in_order_is_clean() -> None:
    verdict = judged([(A, 1), (B, 1), (A, 2)], {A: 2, B: 1})
    assert verdict == MirrorVerdict(events_count=3, lost_count=0, doubled_count=0)
    assert verdict.is_clean


def test_a_gap_is_lost_events() -> None:
    verdict = judged([(A, 1), (A, 4)], {A: 4})
    assert (verdict.lost_count, verdict.doubled_count) == (2, 0)
    assert verdict.first == "execution/1 has seq 4 right after 1"


def test_a_record_seen_before_is_doubled() -> None:
    assert judged([(A, 1), (A, 2), (A, 2), (A, 1)], {A: 2}).doubled_count == 2


def test_records_out_of_order_are_not_clean() -> None:
    assert not judged([(A, 1), (A, 3), (A, 2)], {A: 3}).is_clean


def test_a_missing_end_and_a_missing_root_are_lost() -> None:
    verdict = judged([(A, 1)], {A: 3, B: 5})
    assert verdict.lost_count == 2 + 5


def test_a_missing_beginning_is_lost() -> None:
    assert judged([(A, 3)], {A: 3}).lost_count == 2


def test_what_retention_has_let_go_is_not_lost() -> None:
    assert judged([(A, 3), (A, 4)], {A: 4, B: 9}, expired={A: 2, B: 9}).is_clean


def test_expired_events_that_are_still_there_are_fine() -> None:
    assert judged([(A, 1), (A, 2)], {A: 2}, expired={A: 2}).is_clean


def test_what_was_appended_after_the_heads_were_read_is_welcome() -> None:
    assert judged([(A, 1), (A, 2)], {A: 1}).is_clean


def test_records_are_counted_by_the_type_of_root() -> None:
    tally = MirrorTally()
    tally.add(A, 1)
    tally.add(Root("tenant", 5), 1)
    tally.add(A, 2)
    assert tally.by_type == {"execution": 2, "tenant": 1}
