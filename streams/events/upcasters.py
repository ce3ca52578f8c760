"""The released upcasters. `upcasters.lock.json` has their digests; see docs/schemas.md.

A released function never changes: events were folded with it. Wrong results are corrected by
another version of the event type, with its own step.
"""

from __future__ import annotations

from dataclasses import replace

from streams.events.upcaster import Body, Upcaster


def frame_lease_expired_2(body: Body) -> Body:
    """Version 1 had no reason, or the text of the only one, if the lease did not run out."""
    reason = "restarted" if body.meta.get("reason") else "expired"
    return replace(body, meta={**body.meta, "reason": reason})


STEPS = (Upcaster("noetl.frame.lease_expired", 1, 2, frame_lease_expired_2),)
