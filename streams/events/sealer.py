"""The sealer of one producer: native if possible, else in Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

import orjson

from streams.events.canonical import EPOCH
from streams.events.catalogue import Catalogue
from streams.events.codec import Codec
from streams.events.model import NewEvent
from streams.events.native import native, understands
from streams.events.rules import check_producer, payload_prefix
from streams.events.seal import INLINE_MAX_BYTES, Sealed, seal


class Sealer:
    """Seals events like `seal`, in either implementation."""

    def __init__(
        self, *, producer: str, codec: Codec, catalogue: Catalogue, natively: bool = True
    ) -> None:
        """`natively` allows the native module, if it is installed.

        Raises:
            BadLocator: `producer` is not a locator.
        """
        check_producer(producer)
        self._producer, self._codec, self._catalogue = producer, codec, catalogue
        module = native() if natively else None
        self.native = module if module is not None and understands(module, codec.schema) else None
        self._try_natively: Callable[[NewEvent, int], Sealed | None] | None = None
        if self.native is not None:
            self._try_natively = self.native.Sealer(
                catalogue=catalogue,
                header=codec.header,
                producer=producer,
                inline_max_bytes=INLINE_MAX_BYTES,
                utc=UTC,
                epoch=EPOCH,
                dumps=orjson.dumps,
                payload_prefix=payload_prefix,
            ).seal

    def __call__(self, event: NewEvent, event_id: int) -> Sealed:
        """Validate `event` against the catalogue, and seal it.

        Raises:
            BadEvent: the event is invalid.
        """
        if self._try_natively is not None:
            sealed = self._try_natively(event, event_id)
            if sealed is not None:
                return sealed
        return seal(
            event,
            event_id=event_id,
            producer=self._producer,
            codec=self._codec,
            catalogue=self._catalogue,
        )
