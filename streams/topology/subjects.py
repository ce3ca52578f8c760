"""The subjects of each schema in a registry."""

from __future__ import annotations

from streams.topology import Topology


def subjects(topology: Topology, prefix: str = "") -> dict[str, list[str]]:
    """Return the subjects of each record: one for every declared topic that uses it."""
    found: dict[str, list[str]] = {}
    for topic in topology.topics:
        if topic.schema is not None:
            found.setdefault(topic.schema, []).append(f"{prefix}{topic.name}-value")
    return found
