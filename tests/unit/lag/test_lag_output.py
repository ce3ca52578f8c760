"""Exit codes and output of `streams lag`, and its errors without servers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from click.testing import CliRunner

from streams.cli import cli
from streams.cli.lag_output import exit_code, lag_json, print_lag, print_waterfall, waterfall_json
from streams.kafka.errors import BrokerUnavailable
from streams.lag.backlog import WorkBacklog
from streams.lag.core import lag_of
from streams.lag.evaluation import LagStatus
from streams.lag.model import GroupReading, Owner, PartitionReading, PositionSample
from streams.lag.report import LagReport
from streams.lag.waterfall import HopName, HopReading, waterfall_of

NOW = 1_000_000_000
OWNER = Owner("member-1", "client", "worker-0", "/127.0.0.1")
GROUP = lag_of(
    GroupReading(
        group="noetl.worker.default",
        state="stable",
        at_ms=NOW,
        members=(OWNER,),
        partitions=(
            PartitionReading(
                topic="noetl.work.default",
                partition=0,
                committed=100,
                start=0,
                end=160,
                stable_end=150,
                first_ms=NOW - 60_000,
                first_stable_ms=NOW - 60_000,
                owner=OWNER,
                samples=(PositionSample(NOW - 10_000, 90, 100), PositionSample(NOW, 100, 160)),
            ),
        ),
    )
)
BACKLOG = WorkBacklog(pool="default", frames_waiting=7, rows_waiting=340, commands_waiting=2)
REPORT = LagReport((GROUP,), {"noetl.worker.default": BACKLOG})
FALL = waterfall_of(
    datetime(2026, 1, 1, tzinfo=UTC),
    [
        HopReading(HopName.PLANNER, 2.0, 5, "events"),
        HopReading(HopName.SINK, None, None, "records", "warehouse"),
    ],
)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (LagStatus.OK, 0),
        (LagStatus.WARN, 10),
        (LagStatus.STOP, 11),
        (LagStatus.STALL, 12),
        (LagStatus.REWIND, 13),
    ],
)
def test_the_exit_code_is_that_of_the_worst_group(status: LagStatus, code: int) -> None:
    other = replace(GROUP, total=replace(GROUP.total, status=status))

    assert exit_code(LagReport((GROUP, other))) == code


def test_no_groups_are_ok() -> None:
    assert exit_code(LagReport(())) == 0


def test_json_has_every_figure_of_group_member_topic_and_partition() -> None:
    output: Any = lag_json(REPORT)

    [group] = output["groups"]
    [member], [topic], [partition] = group["members"], group["topics"], group["partitions"]
    for one in (group, member, topic, partition):
        assert one["messages"] == 60
        assert one["seconds"] == 60.0
        assert one["drain_seconds"] == "never"
    assert member["instance_id"] == "worker-0"
    assert partition["messages_stable"] == 50
    assert group["backlog"]["rows_waiting"] == 340


def test_workers_lag_reads_as_frames_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_lag(replace(REPORT, problems=("no rates",)), in_full=False)

    out, err = capsys.readouterr()
    assert "7 frames of 340 rows and 2 commands waiting" in out
    assert "60 messages (10 in open transactions)" in out
    assert "drain never" in out
    assert err == "warning: no rates\n"


def test_the_waterfall_names_hops_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    print_waterfall(FALL, None)

    assert "sink: warehouse" in capsys.readouterr().out
    output = waterfall_json(FALL, None)
    assert (output["total_seconds"], output["complete"]) == (2.0, False)


def test_without_kafka_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streams.lag.broker_queries.TIMEOUT_S", 0.5)
    address = f"127.0.0.1:{unused_port()}"

    result = CliRunner().invoke(
        cli, ["lag"], env={"STREAMS__EVENT_STORE__CONNECTION__URL": address}
    )

    assert isinstance(result.exception, BrokerUnavailable)
    assert address in str(result.exception)
