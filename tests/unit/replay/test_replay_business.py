"""Business projections as of any moment: as the live fold had them, or a named object."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streams.projector import outputs
from streams.projector.memory import MemoryProjections
from streams.replay import business
from streams.replay.business_json import business_json
from streams.replay.cutoff import Cutoff
from streams.replay.errors import MissingObject, TamperedLog
from tests.support.projector.business import CARE, BusinessBench, checksums_in

ID = 1000


def rows(*patients: int) -> list[Any]:
    return [{"facility": n % 2, "patient": n, "score": n / 10, "kind": "mds"} for n in patients]


async def test_every_moment_has_the_checksums_of_the_live_fold() -> None:
    bench, live = BusinessBench(), MemoryProjections()
    events = await bench.run(ID, rows(1, 2, 3), rows(4))
    seen = set()
    for event in events:
        await bench.project([[event]], live)
        state = await bench.replay().state(ID, CARE, Cutoff(seq=event.seq))
        found = {(ID, one.fold.fold.name, 1): one.checksum for one in state.projections}
        assert found == checksums_in(live)
        seen.add(state.checksum)
    assert len(seen) == 4  # before any rows, after the checkpoint, and after each commit


async def test_the_answer_names_rows_payloads_and_moment() -> None:
    bench = BusinessBench()
    events = await bench.run(ID, rows(1, 2), rows(3))

    state = await bench.replay().state(ID, CARE)
    found = orjson.loads(orjson.dumps(business_json(state)))

    assert (found["projection"], found["as_of"]["position"]) == ("business_object", len(events))
    assert found["payloads"]["count"] == 3
    assert set(found["checksums"]) == {"patients", "frames"}
    patients = found["state"]["projections"][0]
    assert {row["key"]["facility"]: row["values"]["rows"] for row in patients["rows"]} == {
        0: 1,
        1: 2,
    }


async def test_a_missing_payload_is_named_unless_the_moment_is_before_it() -> None:
    bench = BusinessBench()
    events = await bench.run(ID, rows(1), rows(2))
    lost = [event for event in events if event.type == "frame.committed"][-1]
    assert lost.payload_ref is not None
    await bench.payloads.delete(lost.payload_ref)

    with pytest.raises(MissingObject, match=f"seq {lost.seq}: the rows in {lost.payload_ref.uri}"):
        await bench.replay().state(ID, CARE)
    state = await bench.replay().state(ID, CARE, Cutoff(seq=lost.seq - 1))
    assert state.payloads.length == 1


async def test_a_tampered_event_is_reported_before_anything_is_folded() -> None:
    bench = BusinessBench()
    events = await bench.run(ID, rows(1))
    stored = bench.stored.stored[events[0].root]
    stored[4] = stored[4]._replace(envelope=stored[5].envelope)

    with pytest.raises(TamperedLog, match="seq 5"):
        await bench.replay().state(ID, CARE)


async def test_a_payload_too_large_to_read_is_left_out_live_and_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = BusinessBench()
    events = await bench.run(ID, rows(1), rows(2, 4, 6, 8, 10))
    sizes = [event.payload_ref.byte_length for event in events if event.payload_ref is not None]
    for module in (outputs, business):
        monkeypatch.setattr(module, "LARGEST_BYTES", min(sizes))

    await bench.project([events])
    state = await bench.replay().state(ID, CARE)

    found = {(ID, one.fold.fold.name, 1): one.checksum for one in state.projections}
    assert found == checksums_in(bench.store)
    (problem,) = state.projections[0].fold.progress.problems
    assert "(OutputTooLarge)" in str(problem["what"])
