"""What topics there are, as data: declared in `topics/*.yaml` and nowhere else."""

from streams.topology.draw import draw
from streams.topology.load import BadDeclaration, load
from streams.topology.model import EVENTS_PREFIX, NAMESPACE, Profile, Topic, Topology, event_topic

__all__ = [
    "EVENTS_PREFIX",
    "NAMESPACE",
    "BadDeclaration",
    "Profile",
    "Topic",
    "Topology",
    "draw",
    "event_topic",
    "load",
]
