"""Errors of the analytics sinks."""

from __future__ import annotations

from collections.abc import Sequence

from streams.errors import Inconsistent, Refused, Unavailable


class NotASink(Refused):
    """The connector does not exist in `connectors/`, or is not a sink."""


class SinkUnavailable(Unavailable):
    """The store of a sink does not respond."""


class SinkStalled(Unavailable):
    """A sink makes no progress."""


class SinkDiffers(Inconsistent):
    """The rows of a sink are not those of the log."""

    def __init__(self, sink: str, differences: Sequence[str]) -> None:
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        super().__init__(
            f"sink {sink} differs from the log: {'; '.join(differences[:3])}{more}; "
            f"see `streams connectors lag {sink}`, or run `streams connectors rebuild {sink}`"
        )
        self.sink, self.differences = sink, tuple(differences)


class TopicsTrimmed(Refused):
    """The event topics lack old events, so a sink cannot be rebuilt from them."""

    def __init__(self, sink: str, topics: Sequence[str]) -> None:
        super().__init__(
            f"sink {sink} cannot be rebuilt: {', '.join(topics)} no longer begin at the first "
            "event (retention), so its rows of older events would be lost; with --keep-rows "
            "the remaining events are written again and no row is deleted"
        )
