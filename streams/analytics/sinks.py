"""The sinks of `connectors/`, and what they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streams.analytics.errors import NotASink
from streams.mirror import connectors
from streams.mirror.agreement import read_by
from streams.mirror.connect import ConnectClient
from streams.resources import folder
from streams.settings import Settings
from streams.topology import load

_DEAD_LETTERS, _CONTROL = "errors.deadletterqueue.topic.name", "iceberg.control.topic"


@dataclass(frozen=True, slots=True)
class AnalyticsSink:
    """One sink: its connector, the topics it reads and the one of its dead letters."""

    connector: connectors.Connector
    topics: tuple[str, ...]
    dead_letters: str

    @property
    def name(self) -> str:
        """The name of its connector."""
        return self.connector.name

    @property
    def group(self) -> str:
        """The consumer group in which Connect stores its offsets."""
        return f"connect-{self.name}"

    @property
    def is_lake(self) -> bool:
        """Whether it writes files instead of rows of a database."""
        return bool(self.control)

    @property
    def control(self) -> tuple[str, ...]:
        """The topic on which the tasks of a lake agree on commits."""
        found = self.connector.config.get(_CONTROL)
        return () if found is None else (found,)


def sinks(settings: Settings, names: Sequence[str] = ()) -> tuple[AnalyticsSink, ...]:
    """Return the sinks with these names, or all; their configuration is rendered.

    Raises:
        NotASink: a name is not that of a sink.
        BadConnectorTemplate: a setting that a template needs is missing.
    """
    values = connectors.placeholders(settings)
    return tuple(
        replace(one, connector=connectors.render(one.connector, values))
        for one in declared_sinks(names)
    )


def declared_sinks(names: Sequence[str] = ()) -> tuple[AnalyticsSink, ...]:
    """Return the sinks with these names, or all, with their templates.

    Raises:
        NotASink: a name is not that of a sink.
    """
    topics = load(folder("topics")).by_name
    templates = {
        one.name: one
        for one in connectors.load(folder("connectors"))
        if _DEAD_LETTERS in one.config
    }
    for name in names:
        if name not in templates:
            raise NotASink(f"{name} is not a sink; the sinks are {', '.join(templates)}")
    return tuple(
        AnalyticsSink(
            one,
            tuple(topic for topic in read_by(one, topics) if topic != one.config.get(_CONTROL)),
            one.config[_DEAD_LETTERS],
        )
        for one in templates.values()
        if not names or one.name in names
    )


async def applied_sinks(settings: Settings, names: Sequence[str] = ()) -> tuple[AnalyticsSink, ...]:
    """Return the sinks with these names; without names, those that Connect has.

    Raises:
        NotASink: a name is not that of a sink, or Connect has none.
        ConnectUnavailable: Connect does not answer.
    """
    found = declared_sinks(names)
    if names:
        return found
    async with ConnectClient(settings.connect.url) as connect:
        known = await connect.names()
    if not (applied := tuple(one for one in found if one.name in known)):
        raise NotASink("Connect has no sinks; `streams connectors apply --profile analytics`")
    return applied
