"""Benchmark of the PFT workload against a plain script and frames of one row.

Each run has its own mock server, whose ledger its rows are checked against. The plain script
runs before and after the playbook, and its better time counts; it also runs with the HTTP
client of the workers, as a separate figure. Frames of one row are run first, as a warm-up, and
over fewer patients: the events of frames are scaled to the same number of cursor rows, the
fixed events of an execution are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncpg
import yaml

from streams.dev.bench.executions import ExecutionEnd, Executions, open_executions
from streams.dev.bench.log_counts import Counts, count
from streams.dev.bench.mock_server import Mock, MockWorld, mock_server, run_plain
from streams.dev.bench.playbook_setup import author_dsn, register
from streams.dev.bench.report import BenchReport, Figure
from streams.dev.bench.resource_usage import ResourceUsage, measure_usage
from streams.dev.bench.row_check import RowCheck, check_rows
from streams.dev.bench.tier_reads import hit_ratio, reads_of_others, reads_since
from streams.resources import folder as assets
from streams.settings import Settings

ROW_BY_ROW_FACILITIES, ROW_BY_ROW_PATIENTS = 10, 20
COMPLETED = "COMPLETED"
REPORT_EVERY_EVENTS = 500

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PftRun:
    """One run of the playbook: outcome, cost, and check of its rows."""

    ended: ExecutionEnd
    counts: Counts
    judgement: RowCheck
    requests: int
    watch: ResourceUsage
    cpu_s: dict[str, float]
    reads: Counter[str] = field(default_factory=Counter)
    """Reads of frames' rows by other processes than their writer, by tier."""

    @property
    def rows_per_s(self) -> float:
        return self.judgement.saved / self.ended.wall_s

    def faults(self, who: str) -> list[str]:
        """Return the faults of this run."""
        found = self.judgement.faults(who)
        if self.ended.status != COMPLETED:
            found.append(f"{who}: the execution ended {self.ended.status}: {self.ended.error}")
        return found


def vary(text: str, *, path: str, frame_size: int | None) -> str:
    """Return the playbook under another path with frames of another size; None: `null`."""
    playbook = yaml.safe_load(text)
    playbook["metadata"]["path"] = path
    for step in playbook["workflow"]:
        if (loop := step.get("loop")) is not None:
            policy = loop.get("frame_policy") or {}
            loop["frame_policy"] = None if frame_size is None else {**policy, "size": frame_size}
    varied: str = yaml.safe_dump(playbook, sort_keys=False)
    return varied


@dataclass(frozen=True, slots=True)
class PftBench:
    """Runs the workload on a stack; `timeout_s` limits each request."""

    settings: Settings
    folder: Path
    timeout_s: float
    say: Say

    async def compare(self, world: MockWorld, frame_size: int) -> BenchReport:
        """Run the workload in frames, as a plain script, and row by row."""
        few = replace(
            world,
            facilities=min(world.facilities, ROW_BY_ROW_FACILITIES),
            patients=min(world.patients, ROW_BY_ROW_PATIENTS),
        )
        async with open_executions(self.settings) as executions:
            by_row = await self._playbook(executions, few, None)
            plain = [await self._plain(world)]
            framed = await self._playbook(executions, world, frame_size)
            plain.append(await self._plain(world))
            same_client = await self._plain(world, client="reqwest")
        rows_per_s = max(rate for rate, _ in plain)
        faults = [
            fault
            for _, judgement in [*plain, same_client]
            for fault in judgement.faults("plain script")
        ]
        faults += framed.faults("playbook") + by_row.faults("row by row")
        return BenchReport(_figures(framed, by_row, rows_per_s, same_client[0]), tuple(faults))

    async def run(self, world: MockWorld, frame_size: int) -> PftRun:
        """Run the workload in frames and nothing to compare it with."""
        async with open_executions(self.settings) as executions:
            return await self._playbook(executions, world, frame_size)

    async def _plain(self, world: MockWorld, client: str = "aiohttp") -> tuple[float, RowCheck]:
        """Run the plain script; return its rows per second, and the check of its rows."""
        dsn, schema = author_dsn(self.settings), "bench_pft_plain"
        async with mock_server(world) as mock:
            figures = await run_plain(
                mock, world, dsn=dsn, schema=schema, timeout_s=self.timeout_s, client=client
            )
            judgement = await self._judge(mock, schema)
        self.say(f"plain script, {client}: {figures['rows']:,.0f} rows in {figures['wall_s']} s")
        return figures["rows_per_s"], judgement

    async def _playbook(
        self, executions: Executions, world: MockWorld, frame_size: int | None
    ) -> PftRun:
        """Run the playbook with frames of this size."""
        name = "row" if frame_size is None else str(frame_size)
        path, schema = f"bench/pft-{name}", f"bench_pft_{name}"
        text = (assets("examples") / "pft" / "playbook.yaml").read_text("utf-8")
        await register(self.settings, vary(text, path=path, frame_size=frame_size))
        log = self.settings.event_store.canonical_connection.dsn("read")
        read_before = reads_of_others(self.folder)
        mine = [executions.connection.get_server_pid()]
        async with mock_server(world) as mock:
            workload = {
                "api_url": mock.url,
                "schema": schema,
                "facilities": world.facilities,
                "patients": world.patients,
                "timeout_s": self.timeout_s,
            }
            async with measure_usage(log, self.folder, not_counted=mine) as watch:
                watch.others["mock server"] = mock.pid
                before = watch.cpu_s()
                ended = await executions.run(path, workload, progress=self._progress(name))
                after = watch.cpu_s()
            judgement = await self._judge(mock, schema)
            requests = (await mock.ledger())["requests"]
        counts = await count(executions.connection, ended.execution_id)
        cpu_s = {part: after[part] - before.get(part, 0.0) for part in after}
        reads = await reads_since(read_before, self.folder, counts.commits)
        run = PftRun(ended, counts, judgement, requests, watch, cpu_s, reads)
        self.say(
            f"frames of {name}: {judgement.saved:,} rows in {ended.wall_s:.1f} s, "
            f"{counts.frames:,} frames, {counts.events:,} events, {ended.status}"
        )
        return run

    async def _judge(self, mock: Mock, schema: str) -> RowCheck:
        """Compare the tables with the ledger; a row never requested is missing, too."""
        rows = sum((await mock.expected())["rows"].values())
        connection = await asyncpg.connect(author_dsn(self.settings))
        try:
            found = await check_rows(connection, schema, await mock.served())
        finally:
            await connection.close()
        return replace(found, expected=rows, missing=found.missing + rows - found.expected)

    def _progress(self, name: str) -> Callable[[int], None]:
        reported = 0

        def report(events: int) -> None:
            nonlocal reported
            if events - reported >= REPORT_EVERY_EVENTS:
                reported = events
                self.say(f"frames of {name}: {events:,} events so far")

        return report


def _figures(
    framed: PftRun, by_row: PftRun, plain_rows_per_s: float, same_client_rows_per_s: float
) -> dict[str, Figure]:
    counts, few = framed.counts, by_row.counts
    scale = counts.cursor_rows / max(1, few.cursor_rows)
    events_by_row = few.events - few.frame_events + few.frame_events * scale
    frames = max(1, counts.frames)
    figures: dict[str, Any] = {
        "execution_id": str(framed.ended.execution_id),
        "requests": framed.requests,
        "expected_rows": framed.judgement.expected,
        "saved_rows": framed.judgement.saved,
        "missing": framed.judgement.missing,
        "doubled": framed.judgement.doubled,
        "altered": framed.judgement.altered,
        "wall_s": round(framed.ended.wall_s, 2),
        "rows_per_s": round(framed.rows_per_s, 1),
        "plain_rows_per_s": round(plain_rows_per_s, 1),
        "ratio_to_plain": round(framed.rows_per_s / plain_rows_per_s, 3),
        "same_client_rows_per_s": round(same_client_rows_per_s, 1),
        "ratio_to_plain_same_client": round(framed.rows_per_s / same_client_rows_per_s, 3),
        "cursor_rows": counts.cursor_rows,
        "frames": counts.frames,
        "rows_per_frame": round(counts.cursor_rows / frames, 2),
        "claims": counts.claims,
        "command_claims": counts.command_claims,
        "events": counts.events,
        "events_per_frame": round(counts.events / frames, 3),
        "claims_ratio_to_frame_size_1": round(counts.claims / max(1.0, few.claims * scale), 4),
        "events_ratio_to_frame_size_1": round(counts.events / max(1.0, events_by_row), 4),
        "frame_size_1_cursor_rows": few.cursor_rows,
        "frame_size_1_rows_per_s": round(by_row.rows_per_s, 1),
        "retries": counts.retries,
        "failed_rows": counts.failed_rows,
        "tier3_bytes": counts.tier3_bytes,
        "commits": counts.commits,
        "reads_per_frame": round(framed.reads.total() / frames, 3),
        "tier15_hit_ratio": hit_ratio(framed.reads),
        "peak_db_connections": framed.watch.peak_connections,
        "cpu_us_per_request": {
            part: round(1e6 * used / framed.requests, 1) for part, used in framed.cpu_s.items()
        },
        "peak_rss_mb": framed.watch.peak_rss_mb,
        "status": framed.ended.status,
    }
    return figures
