"""Start of the sinks: schemas in the registry, topics, connectors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from streams.analytics.sinks import AnalyticsSink, sinks
from streams.mirror.connect import Applied, ConnectClient
from streams.resources import folder
from streams.schema.publish import publish_to
from streams.schema.released import load_pins
from streams.settings import Settings
from streams.topology import load
from streams.topology.broker import TopicAdmin
from streams.topology.subjects import subjects

Report = Callable[[str], None]
SINK_PROFILES = ("analytics", "lake")


async def prepare_sinks(settings: Settings) -> None:
    """Create the sinks' topics, and publish the schemas by which they decode records.

    Raises:
        CannotPublish: the registry cannot give a schema the id that is in our records.
        Unavailable: Kafka or the registry does not answer.
    """
    topology = load(folder("topics"))
    broker = TopicAdmin(settings.event_store.connection.url)
    await asyncio.to_thread(lambda: broker.apply(topology.at(broker.profile())))
    registry = settings.serialization.schema_registry
    # An external registry has given the ids in the log itself.
    if registry.backend != "external" and registry.url is not None:
        await publish_to(registry.url, load_pins(folder("avro_schemas")), subjects(topology))


async def start_sinks(
    settings: Settings, profiles: Sequence[str], report: Report, *, timeout_s: float = 60.0
) -> dict[str, Applied]:
    """Apply the sinks of these profiles; return when they run, or rest as they did before."""
    chosen = [one for one in sinks(settings) if one.connector.profile in profiles]
    await prepare_sinks(settings)
    done: dict[str, Applied] = {}
    async with ConnectClient(settings.connect.url) as connect:
        for sink in chosen:
            done[sink.name] = await _apply(connect, sink, timeout_s)
            report(f"sink {sink.name}: {done[sink.name]}")
    return done


async def _apply(connect: ConnectClient, sink: AnalyticsSink, timeout_s: float) -> Applied:
    outcome = await connect.apply(sink.name, sink.connector.config)
    await connect.wait_until_settled(sink.name, timeout_s=timeout_s)
    return outcome
