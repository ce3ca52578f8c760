"""Kafka topics, declared in `topics/*.yaml`."""

from streams.topology.draw import draw
from streams.topology.load import BadDeclaration, load
from streams.topology.model import Profile, Topic, Topology

__all__ = [
    "BadDeclaration",
    "Profile",
    "Topic",
    "Topology",
    "draw",
    "load",
]
