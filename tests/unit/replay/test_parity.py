"""The parity gate: eight checks, each of which can fail, and none passes without having run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streams.events.catalogue import catalogue
from streams.events.model import Event, PayloadRef
from streams.projector.rows import FrameRow, SnapshotRow
from streams.replay.checks import Check, Status, failed, has_failed, passed
from streams.replay.parity import READER, ParityGate, parity_rules
from streams.replay.parity_reader import GoldenCorpus, find_corpus, reader_check
from streams.replay.parity_rules import EnvelopeRule, has_key, no_hint_alone
from tests.support.replay.benches import SCOPE, ReplayBench, root_of

ID = 1000
NOT_RUN = Check(READER, Status.NOT_RUN, "not run: no reader")


@pytest.fixture
async def bench() -> ReplayBench:
    made = ReplayBench()
    await made.project(await made.with_payloads(ID), snapshots=5)
    return made


async def gate_of(bench: ReplayBench) -> ParityGate:
    gate = ParityGate()
    gate.add(await bench.audit().run(ID, SCOPE, rules=parity_rules(catalogue())))
    return gate


def statuses(checks: list[Check]) -> str:
    return " ".join(one.status.value.replace(" ", "-") for one in checks)


async def test_a_finished_execution_passes_what_can_be_checked(bench: ReplayBench) -> None:
    checks = (await gate_of(bench)).checks(NOT_RUN)
    assert [one.name[0] for one in checks] == list("12345678")
    not_run = "passed passed passed passed not-applicable not-run passed passed"
    assert statuses(checks) == not_run
    assert checks[4].detail == "not configured"
    assert not has_failed(checks)


async def test_each_damage_fails_its_own_check(bench: ReplayBench) -> None:
    snapshot = bench.tables.rows[SnapshotRow, (ID, 10)]
    frame = bench.tables.of(FrameRow)[0]
    bench.tables.rows[SnapshotRow, (ID, 10)] = replace(snapshot, encryption_context={})
    bench.tables.rows[FrameRow, frame.key] = replace(frame, row_count=1)  # type: ignore[arg-type]
    bench.payloads.objects.clear()
    checks = (await gate_of(bench)).checks(NOT_RUN)
    assert statuses(checks[:4]) == "passed failed failed failed"
    assert [one.first for one in checks[1:4]] == [
        f"execution {ID}: snapshot at event 10: tenant encryption context",
        checks[2].first,
        f"execution {ID}: frame {frame.key[0]} as of event {frame.last_seq}: "
        "row_count is 1, from the log 5",
    ]
    assert "event 9 (" in str(checks[2].first) or "event 13 (" in str(checks[2].first)


async def test_events_that_cannot_be_read_are_not_valid(bench: ReplayBench) -> None:
    stored = bench.stored.stored[root_of(ID)]
    stored[6] = stored[6]._replace(checksum=bytes(32))
    checks = (await gate_of(bench)).checks(NOT_RUN)
    assert statuses(checks) == (
        "failed not-run failed not-run not-applicable not-run failed failed"
    )
    assert str(checks[0].first).startswith(f"execution {ID}: execution/{ID} seq 7")


async def test_business_projections_are_checked_where_they_are_configured(
    bench: ReplayBench,
) -> None:
    report = await bench.audit().run(ID, SCOPE, rules=parity_rules(catalogue()))
    for business, status in (([passed("p", "3 rows")], "passed"), ([failed("p", "x")], "failed")):
        gate = ParityGate()
        gate.add(report, business)
        assert statuses(gate.checks(NOT_RUN, has_business=True)[4:5]) == status


async def test_an_envelope_that_breaks_the_catalogue_is_found(bench: ReplayBench) -> None:
    rule, events = EnvelopeRule(catalogue()), await _events(bench)
    assert [rule(event) for event in events] == [None] * 19
    began, opened = events[0], events[3]
    for event, what in (
        (replace(began, tenant_id=""), "tenant_id is missing"),
        (replace(began, type="playbook.begun"), "playbook.begun is not in the event catalogue"),
        (replace(began, producer="me"), "bad locator"),
        (replace(began, schema_version=99), "this program reads up to 1"),
        (replace(opened, meta={}), "meta."),
        (replace(opened, stream_id="execution/7"), "by the catalogue"),
    ):
        assert what in str(rule(event))


async def test_a_payload_only_in_shared_memory_is_found(bench: ReplayBench) -> None:
    event = (await _events(bench))[0]
    hint = {"node_id": "n", "shm_name": "/noetl-1"}
    ref = {"uri": "noetl://x", "sha256": "ab", "ipc": hint}
    for value, is_wrong in (
        (None, False),
        ({"blob": ref}, False),
        ([{"blob": {"ipc": hint}}], True),
        ({"blob": {**ref, "uri": ""}}, True),
        ({**ref, "other": hint}, True),
    ):
        assert (no_hint_alone(replace(event, result=value)) is not None) is is_wrong
    lost = PayloadRef("", "ab", "application/json", 1)
    assert no_hint_alone(replace(event, payload_ref=lost)) is not None


async def test_an_event_without_a_key_is_found(bench: ReplayBench) -> None:
    event = (await _events(bench))[0]
    assert has_key(event) is None
    assert has_key(replace(event, idempotency_key="")) == "it has no idempotency key"


async def _events(bench: ReplayBench) -> list[Event]:
    pages = bench.verified.pages(root_of(ID), through_seq=19)
    return [event async for events in pages for event in events]


@pytest.mark.parametrize(
    ("answer", "code", "status"),
    [
        ('{"identical": true, "events": 1000, "payloads": 3}', 0, Status.PASSED),
        ('{"identical": false, "events": 1000}', 0, Status.FAILED),
        ("", 0, Status.FAILED),
        ("error: every_type: execution/1 seq 3: all is x", 1, Status.FAILED),
    ],
)
async def test_the_reader_decides_whether_rust_equals_python(
    tmp_path: Path, answer: str, code: int, status: Status
) -> None:
    reader = tmp_path / "reader"
    reader.write_text(
        f"#!/bin/sh\n[ $1 = check ] && echo '{answer}' | tee /dev/stderr\nexit {code}\n"
    )
    reader.chmod(0o755)
    found = await reader_check(READER, GoldenCorpus(reader, tmp_path))
    assert found.status is status
    if code:
        assert found.first == answer


async def test_without_a_reader_the_check_is_not_run(tmp_path: Path) -> None:
    found = find_corpus(tmp_path, tmp_path / "reader")
    assert found == "no reader"
    assert await reader_check(READER, found) == NOT_RUN
