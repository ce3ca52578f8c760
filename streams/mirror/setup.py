"""Setup of Kafka and Connect: topics first, then the connector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from streams.mirror import connectors
from streams.mirror.connect import ConnectClient
from streams.resources import folder
from streams.settings import Settings
from streams.topology import load
from streams.topology.broker import TopicAdmin

MIRROR = "noetl-mirror"


async def set_up(settings: Settings, report: Callable[[str], None]) -> None:
    """Create the declared topics and apply the mirror's connector; return when it runs."""
    broker = TopicAdmin(settings.event_store.connection.url)
    topology = load(folder("topics"))
    steps = await asyncio.to_thread(lambda: broker.apply(topology.at(broker.profile())))
    report(f"topics: {len(steps)} changes" if steps else "topics: as declared")
    async with ConnectClient(settings.connect.url) as connect:
        await connect.apply(MIRROR, mirror_config(settings))
        await connect.wait_until_running(MIRROR)
    report("mirror: running")


def mirror_config(settings: Settings) -> dict[str, str]:
    """Return the mirror's connector configuration for these settings."""
    templates = {template.name: template for template in connectors.load(folder("connectors"))}
    rendered = connectors.render(templates[MIRROR], connectors.placeholders(settings))
    return dict(rendered.config)
