"""Parity of business projections: equal to a replay, or the projection that differs is named."""

from __future__ import annotations

from dataclasses import replace

from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.replay.checks import Check, Status
from streams.replay.parity_business import ReplayedBusinessParity
from tests.support.projector.business import CARE, BusinessBench
from tests.unit.projector.test_business import row


async def _failed(bench: BusinessBench) -> list[Check]:
    parity = ReplayedBusinessParity(bench.replay(), MemoryBusiness(bench.store))
    checks = await parity.compare(1000, CARE)
    assert len(checks) > 0
    return [one for one in checks if one.status is not Status.PASSED]


async def test_a_changed_or_lost_state_fails_its_projection_alone() -> None:
    bench = BusinessBench()
    await bench.project([await bench.run(1000, [row("a", 1, 1), row("b", 2, 2)])])
    assert await _failed(bench) == []

    whole = dict(bench.store.rows)
    state = next(one for one in whole.values() if isinstance(one, BusinessStateRow))
    name = f"{state.projection} v{state.version}"
    bench.store.rows[BusinessStateRow, state.key] = replace(state, row_count=9)
    (changed,) = await _failed(bench)
    del bench.store.rows[BusinessStateRow, state.key]
    (lost,) = await _failed(bench)
    del bench.store.rows[BusinessProgressRow, state.key[:3]]
    (unknown,) = await _failed(bench)
    assert [one.name for one in (changed, lost, unknown)] == [name] * 3
    assert unknown.detail == "nothing is stored of it"


async def test_a_missing_payload_fails_the_check() -> None:
    bench = BusinessBench()
    events = await bench.run(1000, [row("a", 1, 1)])
    await bench.project([events])
    (ref,) = [one.payload_ref for one in events if one.payload_ref is not None]
    await bench.payloads.delete(ref)
    (check,) = await _failed(bench)
    assert ref.uri in str(check.first)
