"""The bench of many executions: what it reports as a fault, and how it reads tables."""

from __future__ import annotations

from pathlib import Path

import rocksdict

from streams.dev.bench.many import _faults, _figures, _Found
from streams.dev.bench.planner_restarts import Restart
from streams.dev.bench.stored_plans import stored_executions


def _found(*, opened: int = 100, stored: int = 100, taken_over: int = 100) -> _Found:
    restart = Restart(
        ready_s=1.0, handled_s=2.0, cpu_s=1.5, taken_over=taken_over, from_log=taken_over - 100
    )
    return _Found(
        base_mb=100.0,
        many_mb=110.0,
        start_s=10.0,
        opened=opened,
        stored=[100, 100, stored],
        restarts=[restart, restart],
    )


def test_memory_of_an_execution_is_what_the_planner_uses_beyond_an_empty_one() -> None:
    figures = _figures(_found(), 100, peak_mb=120.0)

    assert figures["memory_kb_each"] == 102.4
    assert figures["started_per_s"] == 10.0


def test_executions_of_others_are_no_fault() -> None:
    assert list(_faults(_found(taken_over=101), 100)) == []


def test_missing_executions_are_faults() -> None:
    assert list(_faults(_found(opened=99), 100)) == ["99 of 100 executions are open and wait"]
    assert list(_faults(_found(stored=98), 100)) == [
        "the tables have 98 of 100 executions after a wipe"
    ]
    assert len(list(_faults(_found(taken_over=97), 100))) == 2


def test_executions_are_read_from_tables_that_another_process_has_open(tmp_path: Path) -> None:
    folder = tmp_path / "v1" / "tables"
    folder.mkdir(parents=True)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    writer = rocksdict.Rdict(str(folder / "executions-0.db"), options=options)
    for key in (b"12", b"34", b"__faust\0offset__"):
        writer[key] = b"7"
    try:
        assert stored_executions(tmp_path) == {12, 34}
    finally:
        writer.close()
