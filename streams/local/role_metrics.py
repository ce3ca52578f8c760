"""Reads the metrics pages of a stack's running roles."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from streams.data_folder import layout_of
from streams.errors import Refused, Unavailable
from streams.local.status import role_address
from streams.metrics.exposition import PATH

TIMEOUT_S = 10.0


class MetricsNotServed(Refused):
    """No running process of the stack serves metrics, or none of the given role."""

    def __init__(self, data: Path, role: str | None) -> None:
        what = "no role serves metrics" if role is None else f"{role} serves no metrics"
        super().__init__(
            f"{data}: {what}; start the stack with `streams up`, see what runs with "
            "`streams status`, and check that `runtime.web_port` is not null"
        )


class MetricsUnreadable(Unavailable):
    """A process did not respond with its metrics."""

    dependency = "a role"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value of a metric."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class ScrapedPage:
    """The metrics page of a process."""

    process: str
    url: str
    text: str

    def values(self) -> Iterator[MetricValue]:
        """Yield the values on the page."""
        for family in text_string_to_metric_families(self.text):
            for one in family.samples:
                yield MetricValue(one.name, dict(one.labels), one.value)


async def scrape(data: Path | None, role: str | None = None) -> list[ScrapedPage]:
    """Return the pages of all roles, or of one role or process such as `worker` or `worker-0`.

    Raises:
        MetricsNotServed: there is none.
        MetricsUnreadable: a process does not respond.
    """
    found = dict(_addresses(data, role))
    if not found:
        raise MetricsNotServed(layout_of(data).data, role)
    limit = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=limit) as session:
        return list(await asyncio.gather(*(_page(session, *one) for one in found.items())))


def _addresses(data: Path | None, role: str | None) -> Iterator[tuple[str, str]]:
    layout = layout_of(data)
    for file in sorted(layout.roles.glob("*.json")):
        name = file.stem
        is_wanted = role in (None, name) or name.rpartition("-")[0] == role
        if is_wanted and (url := role_address(layout, name)) is not None:
            yield name, f"{url}{PATH}"


async def _page(session: aiohttp.ClientSession, name: str, url: str) -> ScrapedPage:
    try:
        async with session.get(url) as response:
            response.raise_for_status()
            return ScrapedPage(name, url, await response.text())
    except (aiohttp.ClientError, TimeoutError) as error:
        raise MetricsUnreadable(f"{name}: {url} cannot be read: {error!r}; try again") from error
