"""DescribeProducers and WriteTxnMarkers, which aiokafka lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)
from aiokafka.structs import TopicPartition

_TEXT = CompactString("utf-8")
_TAGS = ("tags", TaggedFields)
_TOPICS = CompactArray(("name", _TEXT), ("partitions", CompactArray(Int32)), _TAGS)


class _Producers(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 61
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("name", _TEXT),
                (
                    "partitions",
                    CompactArray(
                        ("index", Int32),
                        ("error_code", Int16),
                        ("error_message", _TEXT),
                        (
                            "producers",
                            CompactArray(
                                ("producer_id", Int64),
                                ("producer_epoch", Int32),
                                ("last_sequence", Int32),
                                ("last_timestamp", Int64),
                                ("coordinator_epoch", Int32),
                                ("current_start_offset", Int64),
                                _TAGS,
                            ),
                        ),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _DescribeProducers(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    FLEXIBLE_VERSION = True
    API_KEY = 61
    API_VERSION = 0
    RESPONSE_TYPE = _Producers
    SCHEMA = Schema(("topics", _TOPICS), _TAGS)


class DescribeProducers(Request[_DescribeProducers]):  # type: ignore[misc]  # aiokafka has no types
    """Requests the producers of a leader's partitions and their open transactions."""

    API_KEY = 61

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        names = sorted({partition.topic for partition in partitions})
        self._topics: list[Any] = [
            (name, [p.partition for p in partitions if p.topic == name], {}) for name in names
        ]

    def build(self, request_struct_class: type[_DescribeProducers]) -> Any:
        """Return the encoded request."""
        return request_struct_class(self._topics, {})


class _Marked(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 27
    API_VERSION = 1
    SCHEMA = Schema(
        (
            "markers",
            CompactArray(
                ("producer_id", Int64),
                (
                    "topics",
                    CompactArray(
                        ("name", _TEXT),
                        (
                            "partitions",
                            CompactArray(("index", Int32), ("error_code", Int16), _TAGS),
                        ),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _WriteMarkers(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    FLEXIBLE_VERSION = True
    API_KEY = 27
    API_VERSION = 1
    RESPONSE_TYPE = _Marked
    SCHEMA = Schema(
        (
            "markers",
            CompactArray(
                ("producer_id", Int64),
                ("producer_epoch", Int16),
                ("is_commit", Boolean),
                ("topics", _TOPICS),
                ("coordinator_epoch", Int32),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class AbortMarkers(Request[_WriteMarkers]):  # type: ignore[misc]  # aiokafka has no types
    """Aborts a producer's transaction on one partition."""

    API_KEY = 27

    def __init__(
        self, partition: TopicPartition, producer_id: int, epoch: int, coordinator_epoch: int
    ) -> None:
        topics: list[Any] = [(partition.topic, [partition.partition], {})]
        self._markers: list[Any] = [(producer_id, epoch, False, topics, coordinator_epoch, {})]

    def build(self, request_struct_class: type[_WriteMarkers]) -> Any:
        """Return the encoded request."""
        return request_struct_class(self._markers, {})
