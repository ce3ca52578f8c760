"""Run NoETL's benchmark, test_pft_flow_v2, unchanged on a running stack, and count its rows.

    (cd e2e && streams up --detach --data /tmp/stack)
    python -m examples.noetl.benchmark e2e --data /tmp/stack --dsn postgresql://…
    python -m examples.noetl.benchmark e2e --data /tmp/stack --dsn … --limit 50
    python -m examples.noetl.benchmark e2e --data /tmp/stack --dsn … --patients 100 --kills 2

`--limit` is how many requests a second the server answers before it sends 429 (its default: 50).
`--kills N` ends a worker and a planner N times each with SIGKILL, spread over the run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import asyncpg

from examples.noetl.run import ENDED, servers

_PLAYBOOK = "fixtures/playbooks/pft_flow_test/test_pft_flow_v2.yaml"
_PATIENT_TABLES = ("assessments", "conditions", "medications", "vital_signs", "demographics")
_KILLED = ("worker-0", "planner-0")
_SAMPLE_S = 1.0


@dataclass(slots=True)
class Peaks:
    """The most that was seen while the benchmark ran."""

    memory_mb: dict[str, int] = field(default_factory=dict)
    connections: int = 0


class Stack:
    """The stack under test: its processes by name, through `streams status`."""

    def __init__(self, data: Path) -> None:
        self._data = data

    async def parts(self) -> dict[str, Mapping[str, object]]:
        """Return what the stack reports about each of its processes."""
        command = (sys.executable, "-m", "streams", "status", "--json", "--data", str(self._data))
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        answer, _ = await process.communicate()
        return {str(one["name"]): one for one in json.loads(answer)["parts"]}

    async def kill(self, name: str) -> None:
        """End a process at once; the supervisor starts another."""
        pid = (await self.parts()).get(name, {}).get("pid")
        if isinstance(pid, int) and pid > 0:
            os.kill(pid, signal.SIGKILL)
            _say(f"killed {name} ({pid})")


def expected_rows(facilities: int, patients: int, mds: int) -> dict[str, int]:
    """Return how many rows each table must have at the end; `mds` is what the server's ids give."""
    people = facilities * patients
    return {
        "facilities": facilities,
        "facilities active": 0,
        "patient_ids_work": people,
        "patient_work_queue": 5 * people,
        "patient_work_queue done": 5 * people,
        **{f"patient_{name}": people for name in _PATIENT_TABLES},
        "mds_assessment_ids_work": mds,
        "mds_assessment_ids_work done": mds,
        "mds_assessment_details": mds,
        "facility_data_type_done": 5 * facilities,
        "validation_log": facilities,
        "facility_stage_gate": 0,
    }


_CONDITIONS = {"active": "active", "done": "status = 'done'"}


async def counted_rows(dsn: str, names: Sequence[str]) -> dict[str, int]:
    """Count the rows of the tables, with the condition that a name's second word stands for."""
    connection = await asyncpg.connect(dsn)
    try:
        found = {}
        for name in names:
            table, _, condition = name.partition(" ")
            where = f" WHERE {_CONDITIONS[condition]}" if condition else ""
            sql = f"SELECT count(*) FROM public.pft_test_{table}{where}"  # noqa: S608 - names above
            found[name] = await connection.fetchval(sql)
        return found
    finally:
        await connection.close()


async def expected_mds(session: aiohttp.ClientSession, api: str, people: int) -> int:
    """Ask the server for every patient's assessments, and count the ids in them."""
    count, wanted = 0, asyncio.Queue[int]()
    for patient in range(1, people + 1):
        wanted.put_nowait(patient)

    async def ask() -> None:
        nonlocal count
        while not wanted.empty():
            query = {"patientId": str(wanted.get_nowait()), "page": "1", "pageSize": "1"}
            url = f"{api}/api/v1/patient/assessments"
            async with session.get(url, params=query) as response:
                response.raise_for_status()
                count += sum(
                    len(one["mdsAssessmentIds"]) for one in (await response.json())["data"]
                )

    await asyncio.gather(*(ask() for _ in range(8)))
    return count


async def watch(stack: Stack, dsn: str, peaks: Peaks) -> None:
    """Record the peaks of memory and connections until cancelled."""
    connection = await asyncpg.connect(dsn)
    try:
        while True:
            for name, part in (await stack.parts()).items():
                used = part.get("memory_bytes")
                mb = int(used) // 1_000_000 if isinstance(used, int) else 0
                peaks.memory_mb[name] = max(peaks.memory_mb.get(name, 0), mb)
            sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            peaks.connections = max(peaks.connections, await connection.fetchval(sql) - 1)
            await asyncio.sleep(_SAMPLE_S * 10)
    finally:
        await connection.close()


async def kill_by_turns(stack: Stack, times: int, every_s: float) -> None:
    """Kill a worker and a planner by turns."""
    for _ in range(times):
        for name in _KILLED:
            await asyncio.sleep(every_s)
            await stack.kill(name)


async def run_once(
    session: aiohttp.ClientSession, api: str, content: str, workload: Mapping[str, object]
) -> tuple[str, Mapping[str, object]]:
    """Run the playbook to its end; return the execution's id and its state."""
    async with session.post(f"{api}/api/catalog", json={"content": content}) as response:
        entry = await response.json()
    body = {"path": entry["path"], "version": entry["version"], "workload": workload}
    async with session.post(f"{api}/api/executions", json=body) as response:
        execution_id = str((await response.json())["execution_id"])
    while True:
        async with session.get(f"{api}/api/executions/{execution_id}") as response:
            state = await response.json()
        if state.get("status") in ENDED:
            return execution_id, state
        await asyncio.sleep(0.2)


async def event_counts(
    session: aiohttp.ClientSession, api: str, execution_id: str
) -> dict[str, int]:
    """Count the execution's events by type."""
    counts: dict[str, int] = {}
    after = 0
    while True:
        query = {"after": str(after), "limit": "1000"}
        url = f"{api}/api/executions/{execution_id}/events"
        async with session.get(url, params=query) as response:
            response.raise_for_status()
            events = (await response.json())["events"]
        if not events:
            return counts
        for event in events:
            counts[event["event_type"]] = counts.get(event["event_type"], 0) + 1
            after = max(after, int(event["seq"]))


async def benchmark(arguments: argparse.Namespace) -> dict[str, object]:
    """Run the benchmark and compare its rows with what the server's data gives."""
    stack, people = Stack(arguments.data), arguments.facilities * arguments.patients
    api = str((await stack.parts())["api-0"]["address"])
    content = (arguments.folder / _PLAYBOOK).read_text("utf-8")
    async with aiohttp.ClientSession() as session:
        async with servers(arguments.folder, arguments.server_python, limit=100_000) as lifted:
            mds = await expected_mds(session, lifted["api"], people)
        async with servers(arguments.folder, arguments.server_python, limit=arguments.limit) as own:
            credential = {"kind": "postgres", "fields": {"dsn": arguments.dsn}}
            await session.put(f"{api}/api/credentials/pg_k8s", json=credential)
            workload = {
                "api_url": own["api"],
                "num_facilities": arguments.facilities,
                "patients_per_facility": arguments.patients,
            }
            peaks = Peaks()
            beside = [asyncio.ensure_future(watch(stack, arguments.dsn, peaks))]
            if arguments.kills:
                killing = kill_by_turns(stack, arguments.kills, arguments.kill_every)
                beside.append(asyncio.ensure_future(killing))
            began = time.monotonic()
            execution_id, state = await run_once(session, api, content, workload)
            wall_s = time.monotonic() - began
            for one in beside:
                one.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
        events = await event_counts(session, api, execution_id)
    requests = 5 * people + mds
    expected = expected_rows(arguments.facilities, arguments.patients, mds)
    found = await counted_rows(arguments.dsn, list(expected))
    wrong = {name: [found[name], rows] for name, rows in expected.items() if found[name] != rows}
    return {
        "execution_id": execution_id,
        "status": state.get("status"),
        "wall_s": round(wall_s, 1),
        "requests": requests,
        "requests_per_second": round(requests / wall_s, 1),
        "limit": arguments.limit,
        "ratio_to_limit": round(wall_s / (requests / arguments.limit), 3),
        "events": sum(events.values()),
        "events_by_type": dict(sorted(events.items())),
        "peak_memory_mb": peaks.memory_mb,
        "peak_connections": peaks.connections,
        "rows": found,
        "wrong": wrong,
    }


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the collection (noetl/e2e)")
    parser.add_argument("--data", type=Path, required=True, help="data folder of the running stack")
    parser.add_argument("--dsn", required=True, help="database of the credential pg_k8s")
    parser.add_argument("--server-python", default=sys.executable, help="Python that has fastapi")
    parser.add_argument("--facilities", type=int, default=10)
    parser.add_argument("--patients", type=int, default=1000, help="for each facility")
    parser.add_argument("--limit", type=int, default=100_000, help="requests a second, else 429")
    parser.add_argument("--kills", type=int, default=0, help="of worker and planner, each")
    parser.add_argument("--kill-every", type=float, default=10.0, help="seconds between two kills")
    arguments = parser.parse_args()
    result = asyncio.run(benchmark(arguments))
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    return 0 if result["status"] == "COMPLETED" and not result["wrong"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
