"""Counts and times of the API's requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from time import monotonic

from aiohttp import web
from aiohttp.typedefs import Middleware

from streams.metrics.metric import Distribution, Sample
from streams.metrics.processes import HTTP_REQUESTS, HTTP_SECONDS

_OTHER = "other"


class RequestCounts:
    """Requests by method, route and status."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._seconds: dict[tuple[str, str], Distribution] = {}

    @property
    def middleware(self) -> Middleware:
        """The outermost middleware of an application: it counts each response."""

        @web.middleware
        async def measured(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            began = self._clock()
            response = await handler(request)
            self.add(request, response.status, self._clock() - began)
            return response

        return measured

    def add(self, request: web.Request, status: int, seconds: float) -> None:
        """Count a response."""
        resource = request.match_info.route.resource
        # Paths and methods that are not ours are not labels: anybody can make them up.
        route = _OTHER if resource is None else resource.canonical
        method = _OTHER if resource is None else request.method
        self._requests[method, route, str(status)] += 1
        if (taken := self._seconds.get((method, route))) is None:
            taken = self._seconds[method, route] = Distribution(HTTP_SECONDS.bounds)
        taken.observe(seconds)

    def samples(self) -> Iterator[Sample]:
        """Yield them."""
        for labels, count in self._requests.items():
            yield Sample(HTTP_REQUESTS, count, labels)
        for route, taken in self._seconds.items():
            yield Sample(HTTP_SECONDS, taken, route)
