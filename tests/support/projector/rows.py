"""Rows of single events, as a projector would write them if each were a batch of its own."""

from __future__ import annotations

from streams.events.model import Event
from streams.projector.core import ChangedRows, View, absorb
from streams.projector.rows import Row


def rows_after(view: View, event: Event) -> tuple[View, tuple[Row, ...]]:
    """Return the view after `event`, and the rows to write."""
    after, touched = absorb(view, event)
    changed = ChangedRows()
    if after is not view:
        changed.add(touched, event.seq)
    return after, tuple(changed.rows(after))
