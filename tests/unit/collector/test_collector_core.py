"""Which payloads live, which results end, and what a sweep takes away."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from streams.collector.core import (
    EventExtract,
    RootHolding,
    RootState,
    bare_in,
    digests_in,
    due,
    folder_of,
    hold,
    key_in,
    located_in,
    retained_id,
)
from streams.collector.sweep import Survey, SweepPlan, plan
from streams.events.types import ResultExpired, ResultStored, StepExit
from streams.payload.content import describe, key_of
from streams.payload.objects.port import Stat
from streams.payload.port import JSON, Scope

NOW = datetime(2026, 5, 16, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
A, B, C = (sha256(text).hexdigest() for text in (b"a", b"b", b"c"))
OPEN = RootState(7, "execution", "acme", "care", None)
ENDED = RootState(7, "execution", "acme", "care", NOW - 2 * HOUR)


def stored(seq: int, result_id: int, digest: str = A, **more: Any) -> EventExtract:
    fields = {"result_id": result_id, "scope": "execution", "store": "object", **more}
    named = frozenset([digest])
    return EventExtract(seq, named, ResultStored(node_name="fetch", **fields), named, digest)


def expired(seq: int, result_id: int) -> EventExtract:
    return EventExtract(seq, frozenset(), ResultExpired(result_id=result_id, reason="ttl"))


def naming(seq: int, *digests: str) -> EventExtract:
    return EventExtract(seq, frozenset(digests), sure=frozenset(digests))


def left(seq: int, step: str) -> EventExtract:
    exited = StepExit(node_name=step, status="completed", activation=1)
    return EventExtract(seq, frozenset(), exited)


def reasons(root: RootState, *extracts: EventExtract, **more: Any) -> list[str]:
    return [one.reason for one in due(hold(root, extracts), now=NOW, grace=HOUR, **more)]


# ---------------------------------------------------------------- what is live


def test_a_payload_that_an_event_names_is_live() -> None:
    assert hold(OPEN, [naming(1, A, B)]).live == {A, B}


def test_a_result_s_payload_lives_until_the_result_expires() -> None:
    extracts = [naming(1, A), stored(2, 11), naming(3, A, B)]
    assert hold(OPEN, extracts).live == {A, B}
    assert hold(OPEN, [*extracts, expired(4, 11)]).live == {B}


def test_an_event_s_own_payload_outlives_the_results_that_name_it_too() -> None:
    own = EventExtract(1, frozenset([A]), sure=frozenset([A]), own=A)
    assert hold(OPEN, [own, stored(2, 11), expired(3, 11)]).live == {A}
    assert hold(OPEN, [stored(1, 11), expired(2, 11), own]).live == {A}


def test_what_has_expired_is_told() -> None:
    assert hold(OPEN, [stored(1, 11), naming(2, B), expired(3, 11)]).over == {A}


def test_a_payload_of_two_results_lives_until_both_expire() -> None:
    extracts = [stored(1, 11), stored(2, 12), expired(3, 11)]
    assert hold(OPEN, extracts).live == {A}
    assert hold(OPEN, [*extracts, expired(4, 12)]).live == set()


def test_an_end_that_names_another_result_changes_nothing() -> None:
    assert hold(OPEN, [stored(1, 11), expired(2, 99)]).live == {A}


def test_a_payload_without_a_result_ends_only_by_retention() -> None:
    extracts = [naming(1, A, B)]
    assert hold(ENDED, [*extracts, expired(2, retained_id(ENDED.id, A))]).live == {B}


def test_what_an_event_carries_ends_under_its_own_id_alone() -> None:
    own = EventExtract(1, frozenset([A]), sure=frozenset([A]), own=A)
    extracts = [own, stored(2, 11), expired(3, 11)]
    assert hold(ENDED, extracts).over == set()
    assert hold(ENDED, [*extracts, expired(4, retained_id(ENDED.id, A))]).over == {A}


def test_only_locators_are_sure_to_name_payloads() -> None:
    text = f'{{"sha256":"{A}","uri":"noetl://tenant/t/org/o/payloads/sha256/{B}"}}'.encode()
    assert digests_in(text) == {A, B}
    assert located_in(text, "t/o/") == {B}
    assert not located_in(text, "t/other/")


@pytest.mark.parametrize(
    "text",
    [f'"sha256":"{A}"', f'"sha256": "{A}"', f"sha256/{A}", f'sha256\\":\\"{A}', f"sha256\\/{A}"],
)
def test_names_are_found_however_json_was_written(text: str) -> None:
    assert digests_in(text.encode()) == {A}


def test_longer_and_shorter_numbers_are_no_names() -> None:
    assert digests_in(f"sha256:{A}0 sha256:{A[:-1]} sha512:{A}".encode()) == set()


def test_digests_side_by_side_are_found_each() -> None:
    column = f"12{'ab' * 32}{'cd' * 32}".encode()
    there = {f"t/o/sha256/{word * 32}" for word in ("ab", "cd", "ef")}
    assert bare_in(column, "t/o/sha256/", there) == {k for k in there if "ef" not in k}
    assert not bare_in(column[:63], "t/o/sha256/", there)


def test_a_list_of_digests_names_each() -> None:
    assert digests_in(f'{{"sha256": ["{A}", "{B}"], "other": "{C}"}}'.encode()) == {A, B}


@pytest.mark.parametrize("names", [("acme", "care"), ("a/b", "c d~é%")])
def test_keys_are_those_of_the_store(names: tuple[str, str]) -> None:
    ref = describe(Scope(*names), b"a", media_type=JSON)
    assert key_in(RootState(1, "catalog", *names, None), A) == key_of(ref)
    assert key_of(ref).startswith(folder_of(*names))


# ---------------------------------------------------------------- what ends


def test_time_ends_a_result() -> None:
    past, future = "2026-05-16T11:59:59.000Z", "2026-05-16T12:00:01.000Z"
    assert reasons(OPEN, stored(1, 11, expires_at=past)) == ["ttl"]
    assert reasons(OPEN, stored(1, 11, expires_at=future)) == []


def test_a_permanent_result_does_not_end_by_itself() -> None:
    past = "2020-01-01T00:00:00.000Z"
    assert reasons(ENDED, stored(1, 11, scope="permanent", expires_at=past)) == []


def test_the_end_of_an_execution_ends_its_results_after_the_grace() -> None:
    assert reasons(OPEN, stored(1, 11)) == []
    assert reasons(ENDED, stored(1, 11)) == ["scope"]
    just = RootState(7, "execution", "acme", "care", NOW - HOUR / 2)
    assert reasons(just, stored(1, 11)) == []


def test_the_end_of_a_step_ends_what_it_stored_before() -> None:
    assert reasons(OPEN, stored(2, 11, scope="step"), left(3, "fetch")) == ["scope"]
    assert reasons(OPEN, left(3, "fetch"), stored(4, 11, scope="step")) == []
    assert reasons(OPEN, stored(2, 11, scope="step"), left(3, "other")) == []
    assert reasons(ENDED, stored(2, 11, scope="step")) == ["scope"]


def test_the_end_of_the_outermost_execution_ends_a_workflow_s_results() -> None:
    extract = stored(1, 11, scope="workflow")
    assert reasons(ENDED, extract) == []
    assert reasons(ENDED, extract, workflow_ended_at=NOW - 2 * HOUR) == ["scope"]
    assert reasons(ENDED, extract, workflow_ended_at=NOW) == []


def test_what_has_ended_does_not_end_again() -> None:
    assert reasons(ENDED, stored(1, 11), expired(2, 11)) == []


def test_retention_ends_everything_of_old_executions() -> None:
    extracts = [stored(1, 11, scope="permanent"), naming(2, B)]
    over = {"workflow_ended_at": ENDED.ended_at}
    assert set(reasons(ENDED, *extracts, retention=HOUR, **over)) == {"retention"}
    assert reasons(ENDED, *extracts, retention=3 * HOUR, **over) == []
    assert reasons(OPEN, *extracts, retention=HOUR) == []
    ends = [expired(3 + n, one.result_id) for n, one in enumerate(_due(extracts))]
    assert hold(ENDED, [*extracts, *ends]).live == set()
    assert hold(ENDED, extracts, [one.result_id for one in _due(extracts)]).live == set()


def test_retention_waits_for_the_outermost_execution() -> None:
    extracts = [stored(1, 11, scope="permanent"), naming(2, B)]
    assert reasons(ENDED, *extracts, retention=HOUR) == []
    late = {"workflow_ended_at": NOW - HOUR / 2}
    assert reasons(ENDED, *extracts, retention=HOUR, **late) == []
    past = stored(1, 11, scope="execution")
    assert reasons(ENDED, past, retention=HOUR) == ["scope"], "what ends by itself does so"


def test_playbooks_and_dead_letters_are_kept() -> None:
    catalog = RootState(7, "catalog", "acme", "care", NOW - 2 * HOUR)
    assert reasons(catalog, naming(1, A), retention=HOUR) == []


def _due(extracts: list[EventExtract]) -> Any:
    return due(
        hold(ENDED, extracts),
        now=NOW,
        grace=HOUR,
        retention=HOUR,
        workflow_ended_at=ENDED.ended_at,
    )


# ---------------------------------------------------------------- what is swept


def key(digest: str, folder: str = "acme/care/") -> str:
    return f"{folder}sha256/{digest}"


def seen(
    *,
    live: set[str] = frozenset(),  # type: ignore[assignment]
    objects: Mapping[str, timedelta] = {},
    trash: Mapping[str, timedelta] = {},
    **more: Any,
) -> Survey:
    """Say what lies where, and how old it is."""
    fields = {"dangling": (), "unreadable": frozenset(), "unknown": 0, "open_since": {}, **more}
    return Survey(
        now=NOW,
        live=frozenset(live),
        objects={k: Stat(k, 10, NOW - age) for k, age in objects.items()},
        trash={k: Stat(k.replace("sha256", "trash"), 10, NOW - age) for k, age in trash.items()},
        **fields,
    )


def planned(found: Survey) -> SweepPlan:
    return plan(found, grace=HOUR)


def keys(stats: tuple[Stat, ...]) -> list[str]:
    return [stat.key for stat in stats]


def test_an_old_orphan_goes_to_the_trash_and_a_young_one_waits() -> None:
    found = planned(seen(live={key(C)}, objects={key(A): 2 * HOUR, key(B): HOUR / 2, key(C): HOUR}))
    assert (keys(found.to_trash), keys(found.young)) == ([key(A)], [key(B)])
    assert not found.to_purge


def test_trash_is_deleted_after_the_grace() -> None:
    found = planned(seen(trash={key(A): 2 * HOUR, key(B): HOUR / 2}))
    assert keys(found.to_purge) == [key(A).replace("sha256", "trash")]
    assert keys(found.held) == [key(B).replace("sha256", "trash")]


def test_trash_that_is_named_again_is_brought_back() -> None:
    found = planned(seen(live={key(A)}, trash={key(A): 5 * HOUR}))
    assert found.to_restore == (key(A),)
    assert not found.to_purge


def test_trash_younger_than_an_open_execution_is_held() -> None:
    since = {"acme/care/": NOW - 3 * HOUR}
    found = planned(seen(trash={key(A): 3.5 * HOUR, key(B): 5 * HOUR}, open_since=since))
    assert keys(found.held) == [key(A).replace("sha256", "trash")]
    assert keys(found.to_purge) == [key(B).replace("sha256", "trash")]


def test_another_organization_s_open_execution_holds_nothing() -> None:
    found = planned(seen(trash={key(A): 2 * HOUR}, open_since={"acme/other/": NOW - 3 * HOUR}))
    assert len(found.to_purge) == 1


def test_an_orphan_with_a_copy_in_the_trash_begins_its_time_there_anew() -> None:
    found = planned(seen(objects={key(A): 2 * HOUR}, trash={key(A): 5 * HOUR}))
    assert (keys(found.to_trash), found.to_purge) == ([key(A)], ())


def test_nothing_goes_where_a_live_payload_cannot_be_read() -> None:
    found = planned(
        seen(
            live={key(C)},
            objects={key(A): 2 * HOUR, key(C): HOUR, key(A, "acme/other/"): 2 * HOUR},
            trash={key(B): 2 * HOUR},
            unreadable=frozenset([key(C)]),
        )
    )
    assert keys(found.to_trash) == [key(A, "acme/other/")]
    assert not found.to_purge


def test_an_empty_root_holds_nothing() -> None:
    assert hold(OPEN, []) == RootHolding(OPEN, frozenset())
