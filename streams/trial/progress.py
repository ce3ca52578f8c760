"""Lines that report a trial run's steps and their results as they happen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import orjson

from streams.events.model import Event, Json
from streams.results.envelope import Envelope

SHOWN_CHARS = 400
_STEP_ENDS = ("command.completed", "command.failed", "stage.closed", "call.done", "call.error")


class StepLines:
    """Turns events into lines: one when a step is entered, one when it ends."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._entered: dict[tuple[int, str], datetime] = {}
        self._paths: dict[int, str] = {}
        self._first: int | None = None

    def note(self, event: Event) -> None:
        """Report an event, if it is of interest."""
        line = self._line(event)
        if line is not None:
            self._write(self._prefix(event) + line)

    def _line(self, event: Event) -> str | None:
        step = event.node_name or ""
        match event.type:
            case "playbook.initialized":
                return self._started(event)
            case "step.enter":
                self._entered[event.root.id, step] = event.ingest_time
                return f"→ {step}" + (f" ({event.node_type})" if event.node_type else "")
            case "stage.opened" if (total := event.meta.get("total_rows")) is not None:
                return f"  {step}: {total} rows"
            case "frame.committed":
                return f"  {step}: frame done, {_rows(event)}"
            case "frame.failed" | "frame.abandoned":
                return f"  {step}: attempt {event.meta.get('attempt')} failed: {event.error}"
            case "execution.suspended":
                return f"✗ suspended: {event.error or event.meta.get('reason')}"
            case "playbook.completed" | "playbook.failed" | "execution.cancelled":
                return self._ended(event)
            case kind if kind in _STEP_ENDS:
                return self._step_end(event, step)
        return None

    def _started(self, event: Event) -> str | None:
        self._paths[event.root.id] = str(event.meta.get("path"))
        if self._first is None:
            self._first = event.root.id
            return None
        return "started"

    def _ended(self, event: Event) -> str | None:
        return None if event.root.id == self._first else str(event.status or "ended").lower()

    def _step_end(self, event: Event, step: str) -> str:
        since = self._entered.get((event.root.id, step), event.ingest_time)
        took = f"{(event.ingest_time - since).total_seconds():.2f} s"
        if event.type == "stage.closed":
            mark = "✗" if event.error else "✓"
            return f"{mark} {step} {took} {_rows(event)}" + _why(event)
        if event.error or event.type.endswith((".failed", ".error")):
            return f"✗ {step} {took}" + _why(event)
        return f"✓ {step} {took} {_shown(event)}"

    def _prefix(self, event: Event) -> str:
        if event.root.id == self._first:
            return ""
        return f"[{self._paths.get(event.root.id, event.root.id)}] "


def _rows(event: Event) -> str:
    failed = event.meta.get("failed_rows") or 0
    return f"{event.meta.get('rows', 0)} rows" + (f", {failed} failed" if failed else "")


def _why(event: Event) -> str:
    return f": {event.error}" if event.error else ""


def _shown(event: Event) -> str:
    envelope = Envelope.parse(event.result)
    if not envelope.has_data and event.payload_ref is not None:
        return f"({event.payload_ref.byte_length:,} bytes, stored)"
    return clipped(envelope.data)


def clipped(value: Json, most: int = SHOWN_CHARS) -> str:
    """Return a value as JSON on one line, truncated."""
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= most else f"{text[: most - 1]}…"
