"""The rate of a task's calls: its bucket, and the wait for a slot."""

from __future__ import annotations

from collections.abc import Mapping

from streams.playbook.rate import RatePolicy
from streams.worker.pace.rates import RateLimits
from streams.worker.pace.slots import Rate
from streams.worker.port import ReleasedSlot


async def wait_for_rate(
    rates: RateLimits,
    policy: RatePolicy,
    scope: Mapping[str, object],
    owner: str,
    own_key: str,
    released: ReleasedSlot,
) -> None:
    """Wait until a call may be made, in the context `released`.

    `owner` separates tenants; `own_key` is the key of a rate that names none.

    Raises:
        Refused: the rate cannot be rendered.
        Unavailable: never; while the store of rates is away, the call waits.
    """
    per_second, burst, key = policy.render(scope)
    name, rate = f"{owner}/{own_key if key is None else f'key/{key}'}", Rate(per_second, burst)
    if not rates.try_now(name, rate):
        with released():
            await rates.wait(name, rate)
