"""Selection of loopback ports: the last ones if free, else new ones."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import orjson

from streams.data_folder import Layout, write_private
from streams.local.errors import PortInUse, UnknownPort

HOST = "127.0.0.1"
# Below the ephemeral range, so that no outgoing connection occupies a service's port when the
# service is restarted.
RANGE = range(20_000, 32_000)


def choose_ports(
    names: Iterable[str],
    *,
    last: Mapping[str, int],
    requested: Mapping[str, int],
    is_free: Callable[[int], bool],
    guesses: Iterable[int],
) -> dict[str, int]:
    """Choose a distinct port for every name.

    Raises:
        PortInUse: a requested port is in use.
        UnknownPort: a port was requested for an unknown name.
    """
    names = list(names)
    for name in requested:
        if name not in names:
            raise UnknownPort(name, names)
    chosen: dict[str, int] = {}
    fresh = iter(guesses)
    for name in names:
        wanted = requested.get(name, 0)
        if wanted and (wanted in chosen.values() or not is_free(wanted)):
            raise PortInUse(name, wanted)
        old = last.get(name, 0)
        reserved = {*chosen.values(), *(port for port in requested.values() if port)}
        if not wanted and old and old not in reserved and is_free(old):
            wanted = old
        while not wanted:
            guess = next(fresh)
            wanted = guess if guess not in reserved and is_free(guess) else 0
        chosen[name] = wanted
    return chosen


def assign_ports(
    layout: Layout, names: Iterable[str], requested: Mapping[str, int]
) -> dict[str, int]:
    """Choose the stack's ports and store them for the next start."""
    last: dict[str, int] = {}
    with suppress(OSError, ValueError):
        last = orjson.loads(layout.ports.read_bytes())
    chosen = choose_ports(
        names,
        last=last,
        requested=requested,
        is_free=port_is_free,
        guesses=iter(lambda: random.choice(RANGE), 0),  # noqa: S311 - not a secret
    )
    # Explicitly requested ports are not stored: they may be omitted next time.
    automatic = {name: port for name, port in chosen.items() if not requested.get(name)}
    write_private(layout.ports, orjson.dumps({**last, **automatic}))
    return chosen


def port_is_free(port: int) -> bool:
    """Return whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            probe.bind((HOST, port))
            probe.listen(1)
            return True
    return False
