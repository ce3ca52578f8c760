"""Choosing loopback ports: last time's where they are free, else new ones."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import orjson

from streams.data_folder import Layout, write_private
from streams.local.errors import PortInUse, UnknownPort

HOST = "127.0.0.1"
# Below the range from which the kernel takes ports for outgoing connections, so that no
# stranger's connection sits on a service's port when the service is restarted.
RANGE = range(20_000, 32_000)


def choose_ports(
    names: Iterable[str],
    *,
    last: Mapping[str, int],
    asked: Mapping[str, int],
    is_free: Callable[[int], bool],
    guesses: Iterable[int],
) -> dict[str, int]:
    """Give every name a port of its own.

    Raises:
        PortInUse: a port asked for by number is taken.
        UnknownPort: a port was asked for under an unknown name.
    """
    names = list(names)
    for name in asked:
        if name not in names:
            raise UnknownPort(name, names)
    chosen: dict[str, int] = {}
    fresh = iter(guesses)
    for name in names:
        wanted = asked.get(name, 0)
        if wanted and (wanted in chosen.values() or not is_free(wanted)):
            raise PortInUse(name, wanted)
        old = last.get(name, 0)
        reserved = {*chosen.values(), *(port for port in asked.values() if port)}
        if not wanted and old and old not in reserved and is_free(old):
            wanted = old
        while not wanted:
            guess = next(fresh)
            wanted = guess if guess not in reserved and is_free(guess) else 0
        chosen[name] = wanted
    return chosen


def assign_ports(layout: Layout, names: Iterable[str], asked: Mapping[str, int]) -> dict[str, int]:
    """Choose the stack's ports and remember them for the next start."""
    last: dict[str, int] = {}
    with suppress(OSError, ValueError):
        last = orjson.loads(layout.ports.read_bytes())
    chosen = choose_ports(
        names,
        last=last,
        asked=asked,
        is_free=port_is_free,
        guesses=iter(lambda: random.choice(RANGE), 0),  # noqa: S311 - not a secret
    )
    # A port asked for by number is asked for again or given up: only ours are remembered.
    ours = {name: port for name, port in chosen.items() if not asked.get(name)}
    write_private(layout.ports, orjson.dumps({**last, **ours}))
    return chosen


def port_is_free(port: int) -> bool:
    """Tell whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            probe.bind((HOST, port))
            probe.listen(1)
            return True
    return False
