"""The transport, as Faust finds it: `streams://host:port`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faust.transport.drivers import TRANSPORTS, aiokafka

from streams.kafka.transport.consumer import Consumer
from streams.kafka.transport.delivery import FAUST_LOG

SCHEME = "streams"


class Producer(aiokafka.Producer):
    """An idempotent producer with acks from all replicas."""

    logger = FAUST_LOG

    def _settings_extra(self) -> Mapping[str, Any]:
        return {**super()._settings_extra(), "enable_idempotence": True, "acks": "all"}


class Transport(aiokafka.Transport):
    """Faust's aiokafka transport with our consumer."""

    Consumer = Consumer
    Producer = Producer


def register() -> None:
    """Let Faust find the transport by its scheme."""
    TRANSPORTS.aliases[SCHEME] = f"{__name__}:Transport"
