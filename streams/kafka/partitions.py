"""Partitions of keys, as Kafka's producers choose them."""

from __future__ import annotations

from aiokafka.partitioner import murmur2


def partition_of_id(root_id: int, partitions: int) -> int:
    """Return the partition of a root's events."""
    hashed: int = murmur2(str(root_id).encode())
    return (hashed & 0x7FFFFFFF) % partitions
