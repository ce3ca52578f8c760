"""The storage that writes nothing more: what is in the log anyway."""

from __future__ import annotations

import orjson

from streams.worker.errors import BadConfig
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference

MOST_BYTES = 16 * 1024


class EventLogDriver:
    """Names the step's own event; what the author wants recorded beside goes into it."""

    def __init__(self, around: SinkEnvironment) -> None:
        pass

    async def write(self, job: SinkJob) -> SinkReference:
        """Return a reference to the event, with `data` in it where the author gave any."""
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
                f"`data` has {size} bytes and an event takes {MOST_BYTES} of a sink; "
                "leave `data` out (the result is in the log anyway), or choose a storage"
            )
        return {**made, "data": job.data}

    async def close(self) -> None:
        """Hold nothing."""
