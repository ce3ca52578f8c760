"""What topics there are, as data: declared in `topics/*.yaml` and nowhere else."""

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
