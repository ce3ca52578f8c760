"""Handlers of the fold: one function for each class of events that changes a plan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from streams.events.types import AnyEvent
from streams.execution.plan import Plan

Handled = TypeVar("Handled", bound=AnyEvent)
Handler: TypeAlias = Callable[[Plan, Handled, datetime], Plan]


class Handlers:
    """Functions that return the plan after an event, by the class of the event."""

    def __init__(self) -> None:
        self.of: dict[type[object], Handler[Any]] = {}

    def on(self, *kinds: type[Handled]) -> Callable[[Handler[Handled]], Handler[Handled]]:
        """Make a function the handler of these classes of events."""

        def register(handler: Handler[Handled]) -> Handler[Handled]:
            self.of.update(dict.fromkeys(kinds, handler))
            return handler

        return register
