"""Sink that refers to the step's event, or records `data` in it."""

from __future__ import annotations

import orjson

from streams.worker.errors import BadConfig
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference

MOST_BYTES = 16 * 1024


class EventLogDriver:
    """Returns a reference to the step's event; `data` of the sink is recorded in that event."""

    def __init__(self, around: SinkEnvironment) -> None:
        pass

    async def write(self, job: SinkJob) -> SinkReference:
        """Return a reference to the event, with the sink's `data` if given."""
        call = job.call
        made: SinkReference = {
            "store": "event_log",
            "key": f"execution/{call.execution_id}/step/{call.step}",
            "range": "",
        }
        if not job.is_given:
            return made
        size = len(orjson.dumps(job.data, default=str))
        if size > MOST_BYTES:
            raise BadConfig(
                f"`data` has {size} bytes, more than the {MOST_BYTES} of a sink in an event; "
                "omit `data` (the result is in the log anyway), or use another storage"
            )
        return {**made, "data": job.data}

    async def close(self) -> None:
        """Do nothing: nothing is open."""
