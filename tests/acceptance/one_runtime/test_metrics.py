"""Every role serves its declared metrics, and a run shows in them."""

from __future__ import annotations

import asyncio
import sys

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from streams.local.role_metrics import ScrapedPage, scrape
from streams.metrics.declared import metrics_of
from streams.roles.start import ROLES
from tests.support.servers.runtime import Runtime, playbook
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]

ROWS = 40
VISIT = {
    "step": "visit",
    "loop": {
        "in": f"{{{{ range({ROWS}) | list }}}}",
        "iterator": "n",
        "spec": {"mode": "parallel"},
        "frame_policy": {"size": 10},
    },
    "tool": [{"say": {"kind": "noop"}}],
}
GROWS = {
    'noetl_events_appended_total{"event_type": "frame.claimed"}': 4,
    'noetl_events_appended_total{"event_type": "frame.dispatched"}': 4,
    'noetl_frames_total{"outcome": "committed"}': 4,
    'noetl_frame_rows_total{"outcome": "done"}': ROWS,
    'noetl_frame_lease_seconds_count{}': 4,
    'noetl_execution_seconds_count{"status": "COMPLETED"}': 1,
    'noetl_projection_rows_written_total{"table": "frame"}': 4,
    'noetl_group_records_finished_total{"group": "noetl.projector"}': 10,
    'noetl_group_records_finished_total{"group": "noetl.planner"}': 10,
}  # fmt: skip


def sums(pages: list[ScrapedPage]) -> dict[str, float]:
    """Return each value, summed over the processes."""
    found: dict[str, float] = {}
    for page in pages:
        for one in page.values():
            key = f"{one.name}{orjson.dumps(one.labels).decode().replace(':', ': ')}"
            found[key] = found.get(key, 0) + one.value
    return found


async def test_every_role_has_its_metrics_and_a_run_counts_in_them(runtime: Runtime) -> None:
    await until(lambda: _all_serve(runtime), within_s=60)
    before = sums(await scrape(runtime.data))

    ended = await runtime.run(playbook(VISIT))

    assert (ended.status, ended.error) == ("COMPLETED", None)

    async def has_grown() -> bool:
        after = sums(await scrape(runtime.data))
        return not {
            key: (before.get(key, 0), after.get(key, 0))
            for key, least in GROWS.items()
            if after.get(key, 0) - before.get(key, 0) < least
        }

    await until(has_grown, within_s=30)
    for role in ROLES:
        for page in await scrape(runtime.data, role):
            families = {one.name: one for one in text_string_to_metric_families(page.text)}
            for metric in metrics_of(role):
                is_counter = metric.kind == "counter"
                name = metric.name.removesuffix("_total") if is_counter else metric.name
                assert name in families, (page.process, metric.name)
                assert families[name].type == metric.kind
                if not metric.labels:
                    assert families[name].samples, (page.process, metric.name)
    planner = sums(await scrape(runtime.data, "planner"))
    assert planner['frame_backlog_total{"stage_kind": "loop"}'] == 0


async def _all_serve(runtime: Runtime) -> bool:
    names = {page.process.rpartition("-")[0] for page in await scrape(runtime.data)}
    return set(ROLES) <= names


async def test_the_command_prints_the_metrics_of_one_role_as_json(runtime: Runtime) -> None:
    command = ("-m", "streams", "metrics", "planner", "--json", "--data", str(runtime.data))
    running = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await running.communicate()

    (page,) = orjson.loads(printed)["processes"]
    assert page["process"] == "planner-0"
    (info,) = [one for one in page["metrics"] if one["name"] == "noetl_role_info"]
    assert (info["labels"]["role"], info["value"]) == ("planner", 1.0)
