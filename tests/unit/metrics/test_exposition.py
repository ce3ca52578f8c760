"""A process's page has every declared metric of its role, as Prometheus' own parser reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from streams.dev.metrics_page import insert_metrics, metrics_table
from streams.metrics.declared import EXECUTION_SECONDS, FRAME_BACKLOG, METRICS, metrics_of
from streams.metrics.exposition import RoleMetrics
from streams.metrics.metric import Distribution, Sample
from streams.metrics.roles import ROLES
from streams.roles.start import ALL_ROLES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"


async def families(metrics: RoleMetrics) -> dict[str, Family]:
    text = (await metrics.page()).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_the_table_in_the_docs_is_up_to_date() -> None:
    page = PAGE.read_text("utf-8")

    assert insert_metrics(page, metrics_table()) == page, (
        "docs/metrics.md is stale: run python -m streams.dev.metrics_page"
    )


def test_names_are_unique_and_every_role_exists() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert set(ROLES) == set(ALL_ROLES)
    assert {role for metric in METRICS for role in metric.roles} == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
async def test_a_page_has_each_metric_of_the_role_before_anything_is_counted(role: str) -> None:
    found = await families(RoleMetrics(role, f"{role}-0"))

    names = [
        metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
        for metric in metrics_of(role)
    ]
    assert sorted(found) == sorted(names)
    assert found["noetl_role_info"].samples[0].labels["shard"] == f"{role}-0"
    assert found["process_cpu_seconds"].samples[0].value > 0


async def test_samples_of_all_parts_are_on_the_page() -> None:
    seconds = Distribution(EXECUTION_SECONDS.bounds)
    for value in (0.1, 0.2, 1e9):
        seconds.observe(value)
    metrics = RoleMetrics("planner", "planner-0")
    metrics.add(lambda: [Sample(EXECUTION_SECONDS, seconds, ("FAILED",))])
    metrics.add(lambda: [Sample(FRAME_BACKLOG, 7, ("loop",))], blocks=True)

    found = await families(metrics)

    values = {
        (one.name, one.labels.get("le")): one.value
        for one in found["noetl_execution_seconds"].samples
    }
    assert values["noetl_execution_seconds_bucket", "0.1"] == 1
    assert values["noetl_execution_seconds_bucket", "0.5"] == 2
    assert values["noetl_execution_seconds_bucket", "28800.0"] == 2
    assert values["noetl_execution_seconds_bucket", "+Inf"] == 3
    assert values["noetl_execution_seconds_count", None] == 3
    assert values["noetl_execution_seconds_sum", None] == pytest.approx(1e9 + 0.3)
    (backlog,) = found["frame_backlog_total"].samples
    assert (backlog.labels, backlog.value) == ({"stage_kind": "loop"}, 7)


async def test_a_metric_of_another_role_is_refused() -> None:
    metrics = RoleMetrics("worker", "worker-0")
    metrics.add(lambda: [Sample(FRAME_BACKLOG, 7, ("loop",))])

    with pytest.raises(KeyError, match="frame_backlog_total"):
        await metrics.page()
