"""The mock server of the PFT workload, with a ledger of what it served.

It shares the machine with what is measured, so it speaks just enough HTTP/1.1 for GET over
connections that stay open, without a framework.

Run it with:  .venv/bin/python -m examples.pft.server --facilities 2 --patients 10
It says its address as JSON when it is ready, and ends on SIGTERM. Beside the records it has
  /expected                 how many requests and rows a complete run comes to
  /ledger[?kind=KIND]       what was served: counts, and the rows of a kind as [key, value]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field

from .world import KINDS, Faults, World

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
END = b"\r\n\r\n"


@dataclass(slots=True)
class Ledger:
    """What was asked for and what was served, by path."""

    world: World
    requests: int = 0
    served: Counter[bytes] = field(default_factory=Counter)
    tries: Counter[bytes] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def tell(self, kind: str) -> dict[str, object]:
        """Return the counts, and the identity of every row of `kind` that was served."""
        places = [place for path in self.served if (place := self.world.place(path))]
        return {
            "requests": self.requests,
            "answered": sum(self.served.values()),
            "answered_again": sum(self.served.values()) - len(self.served),
            "faults": dict(self.faults),
            "rows": sum(len(self.world.keys(*place)) for place in places),
            "keys": [
                key for place in places if place[0] == kind for key in self.world.keys(*place)
            ],
        }


class Connection(asyncio.Protocol):
    """One client's connection: requests in, one answer each, in order."""

    def __init__(self, world: World, faults: Faults, ledger: Ledger, latency_s: float) -> None:
        self._world, self._faults, self._ledger = world, faults, ledger
        self._latency_s = latency_s
        self._is_faulty = faults.busy_rate > 0 or faults.silent_rate > 0
        self._waiting = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(END)) >= 0:
            request, self._waiting = self._waiting[:end], self._waiting[end + len(END) :]
            # GET <path> HTTP/1.1
            path = request[4 : request.find(b" ", 4)]
            if self._latency_s:
                asyncio.get_running_loop().call_later(self._latency_s, self._answer, path)
            else:
                self._answer(path)

    def _answer(self, path: bytes) -> None:
        if self._transport is None:
            return
        body = self._world.answer(path)
        if body is None:
            self._transport.write(self._other(path))
            return
        self._ledger.requests += 1
        fault = self._fault(path) if self._is_faulty else None
        if fault is None:
            self._ledger.served[path] += 1
            self._transport.write(OK % (len(body), body))
        elif fault == "busy":
            self._transport.write(BUSY)

    def _fault(self, path: bytes) -> str | None:
        self._ledger.tries[path] += 1
        fault = self._faults.of(path, self._ledger.tries[path])
        if fault is not None:
            self._ledger.faults[fault] += 1
        return fault

    def _other(self, path: bytes) -> bytes:
        name, _, kind = path.decode().partition("?kind=")
        if name == "/expected":
            body = json.dumps(self._world.expected()).encode()
        elif name == "/ledger" and (not kind or kind in KINDS):
            body = json.dumps(self._ledger.tell(kind)).encode()
        else:
            return UNKNOWN
        return OK % (len(body), body)


async def serve(
    world: World, faults: Faults, *, latency_s: float = 0.0, port: int = 0
) -> asyncio.Server:
    """Start serving on the loopback address; port 0 is any free one."""
    ledger = Ledger(world)
    return await asyncio.get_running_loop().create_server(
        lambda: Connection(world, faults, ledger, latency_s), "127.0.0.1", port, backlog=1024
    )


def address(server: asyncio.Server) -> str:
    """Return the address of a server."""
    host, port = server.sockets[0].getsockname()
    return f"http://{host}:{port}"


async def _run(given: argparse.Namespace) -> None:
    world = World(
        facilities=given.facilities,
        patients=given.patients,
        rows_per_page=given.rows_per_page,
        mds_every=given.mds_every,
    )
    faults = Faults(busy_rate=given.error_rate, silent_rate=given.timeout_rate, seed=given.seed)
    server = await serve(world, faults, latency_s=given.latency_ms / 1000, port=given.port)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    sys.stdout.write(json.dumps({"url": address(server)}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    server.close()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The mock server of the PFT workload.")
    add = parser.add_argument
    add("--facilities", type=int, default=10)
    add("--patients", type=int, default=200, help="patients of each facility")
    add("--rows-per-page", type=int, default=1)
    add("--mds-every", type=int, default=10, help="every n-th patient has MDS details; 0: none")
    add("--latency-ms", type=float, default=0.0, help="wait before each answer")
    add("--error-rate", type=float, default=0.0, help="share of requests answered with 503")
    add("--timeout-rate", type=float, default=0.0, help="share of requests never answered")
    add("--seed", type=int, default=1, help="which requests fail")
    add("--port", type=int, default=0, help="0: any free one")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(_run(_parse()))
