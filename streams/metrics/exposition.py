"""The metrics of a process as Prometheus' text format."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from streams.metrics.declared import metrics_of
from streams.metrics.metric import Distribution, Metric, Sample, Source
from streams.metrics.processes import ROLE_INFO

PATH, CONTENT_TYPE = "/metrics", CONTENT_TYPE_LATEST


class RoleMetrics:
    """The metrics of one process; its parts add what they count.

    Nothing is computed before a scrape. Every declared metric of the role is present, also
    before its first sample.
    """

    def __init__(self, role: str, shard: str) -> None:
        self._role, self._shard = role, shard
        self._sources: list[Source] = [self._own]
        self._blocking: list[Source] = []
        self._process = ProcessCollector(registry=None)

    def add(self, source: Source, *, blocks: bool = False) -> None:
        """Add the samples of a part of the process; in a thread, if reading them `blocks`."""
        (self._blocking if blocks else self._sources).append(source)

    async def page(self) -> bytes:
        """Return the text that Prometheus scrapes.

        Raises:
            KeyError: a part reports a metric that is not declared for the role.
        """
        waited = await asyncio.to_thread(_read, self._blocking)
        return generate_latest(_Families(self._families([*_read(self._sources), *waited])))

    def _families(self, samples: Iterable[Sample]) -> list[Family]:
        families = {metric.name: _family(metric) for metric in metrics_of(self._role)}
        for sample in samples:
            _add(families[sample.metric.name], sample)
        for found in self._process.collect():
            for one in found.samples:
                if one.name in families:
                    families[one.name].add_sample(one.name, {}, one.value)
        return list(families.values())

    def _own(self) -> Iterator[Sample]:
        yield Sample(ROLE_INFO, 1, (self._role, self._shard, _version()))


class _Families(Collector):
    """What was collected already."""

    def __init__(self, families: list[Family]) -> None:
        self._found = families

    def collect(self) -> list[Family]:
        return self._found


def _read(sources: Iterable[Source]) -> list[Sample]:
    return [sample for source in sources for sample in source()]


def _family(metric: Metric) -> Family:
    name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
    return Family(name, metric.help, metric.kind)


def _add(family: Family, sample: Sample) -> None:
    name, value = sample.metric.name, sample.value
    labels = dict(zip(sample.metric.labels, sample.labels, strict=True))
    if not isinstance(value, Distribution):
        family.add_sample(name, labels, value)
        return
    bounds = [*map(str, value.bounds), "+Inf"]
    counts = list(accumulate(value.counts))
    for bound, count in zip(bounds, counts, strict=True):
        family.add_sample(f"{name}_bucket", {**labels, "le": bound}, count)
    family.add_sample(f"{name}_sum", labels, value.total)
    family.add_sample(f"{name}_count", labels, counts[-1])


def _version() -> str:
    try:
        return version("noetl-streams")
    except PackageNotFoundError:
        return "0"
