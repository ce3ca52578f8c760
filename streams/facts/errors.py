"""Errors about facts as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from streams.errors import Inconsistent


class FactsDiffer(Inconsistent):
    """The fact topics are not what the log gives."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__(
            f"{', '.join(topics)}: differ from the log; if the facts role runs and has no lag, "
            "run `streams rebuild facts`"
        )
