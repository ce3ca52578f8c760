"""Rows shared by real processes of a node, as files and by a broker, while some are killed."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from streams.app import sharing_terms
from streams.local.settings import load_settings
from streams.payload.shm.space import SEALED, Space
from tests.support.payload.sharing import digest, rows, run

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no memfd here"),
]
MB = 1 << 20
TIMEOUT_S = 60.0
ALL_SEALS = 0xF
CARRIERS = ("shm", "memfd")


class NodeProcess:
    """A process of the node that executes requests one after the other."""

    def __init__(self, config: Path, ends: ExitStack) -> None:
        # Forked by a server that has imported everything: a second less for each of them.
        server = get_context("forkserver")
        server.set_forkserver_preload(["tests.support.payload.sharing"])
        self.ear, its_end = server.Pipe()
        self.process = server.Process(target=run, args=(config, its_end))
        ends.callback(self.ear.close)
        ends.callback(self.process.join)
        ends.callback(self.process.kill)
        self.process.start()
        its_end.close()
        self.hear()

    def put(self, count: int) -> dict[str, Any]:
        """Let it store rows; return their reference."""
        return self.tell({"put": count})

    def read(self, ref: dict[str, Any]) -> dict[str, Any]:
        """Let it read rows; return what it saw, and its counters."""
        return self.tell({"read": ref})

    def counts(self) -> dict[str, Any]:
        """Return its counters."""
        found: dict[str, Any] = self.tell({})["counts"]
        return found

    def tell(self, words: dict[str, Any]) -> dict[str, Any]:
        """Tell it something and return the answer."""
        self.ear.send(words)
        return self.hear()

    def hear(self) -> dict[str, Any]:
        """Return what it says next."""
        assert self.ear.poll(TIMEOUT_S), "it says nothing"
        found: dict[str, Any] = self.ear.recv()
        return found

    def kill(self) -> None:
        """End it as the kernel would for want of memory."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


@dataclass(frozen=True, slots=True)
class Node:
    """A folder of shared memory, a store, and the processes that were started on them."""

    folder: Path
    ends: ExitStack

    def config(self, carrier: str, store: str = "store", **cache: int) -> Path:
        """Write settings in which only the carrier and these settings are special."""
        lease = cache.pop("lease_seconds", 60)
        words = {
            "payload_store": {
                "backend": "local",
                "encryption_at_rest": False,
                "connection": {"path": str(self.folder / store)},
                "cache": {
                    "tier_15_carrier": carrier,
                    "tier_15_path": str(self.folder / "shm"),
                    "tier_1_memory_mb": 0,
                    "tier_2_disk_gb": 0,
                    **cache,
                },
            },
            "frames": {"lease_seconds": lease},
        }
        path = self.folder / f"{carrier}-{store}.yaml"
        path.write_text(yaml.safe_dump(words))
        return path

    def start(self, config: Path) -> NodeProcess:
        """Start a process that reads and writes."""
        return NodeProcess(config, self.ends)

    def broker(self, config: Path) -> subprocess.Popen[bytes]:
        """Start the broker, as `streams up` would."""
        words = ("run", "shm-broker", "--data", self.folder, "--config", config, "--json")
        broker = subprocess.Popen(
            [sys.executable, "-m", "streams", *map(str, words)],
            stdout=subprocess.PIPE,
            env={**environment(), "NOETL_SHARD_ID": "shm-broker-0"},
        )
        self.ends.enter_context(broker)
        self.ends.callback(broker.kill)
        assert broker.stdout is not None
        assert orjson.loads(broker.stdout.readline())["state"] == "ready"
        return broker

    def told_by_broker(self) -> dict[str, Any]:
        """Return the counters that operators see."""
        path = self.folder / "roles" / "shm-broker-0" / "tiers.json"
        found: dict[str, Any] = orjson.loads(path.read_bytes()) if path.exists() else {}
        return found


def environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("STREAMS")}
    return {**own, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}


def space_of(config: Path) -> Space:
    return sharing_terms(load_settings(config, None).settings).space


def regions(config: Path) -> list[Path]:
    space = space_of(config)
    files = sorted(space.folder.glob(f"{space.prefix}*"))
    return [path for path in files if path.name != space.reserve]


def served_by(report: dict[str, Any]) -> dict[str, int]:
    return {one["tier"]: one["count"] for one in report["counts"]["reads"]}


def is_sealed(ref: dict[str, Any]) -> bool:
    return ref["ipc"] is not None and ref["ipc"]["shm_name"].startswith(SEALED)


def wait_for(condition: Callable[[], bool], every_s: float = 0.05) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(every_s)


@pytest.fixture
def node() -> Iterator[Node]:
    # Short, because a socket's path must be; and in memory, as the real one is.
    with tempfile.TemporaryDirectory(dir=_memory(), prefix="t") as name, ExitStack() as ends:
        (Path(name) / "shm").mkdir()
        yield Node(Path(name), ends)


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def test_a_broker_hands_rows_from_process_to_process_sealed_and_without_a_copy(
    node: Node,
) -> None:
    config = node.config("memfd")
    node.broker(config)
    writer, reader = node.start(config), node.start(config)

    before = datetime.now(UTC)
    ref = writer.put(1000)
    after = datetime.now(UTC)
    seen = reader.read(ref)

    assert is_sealed(ref)
    assert not regions(config)  # nothing of it is a file
    assert seen["digest"] == digest(rows(1000))
    assert seen["mapped"].startswith("/memfd:noetl")
    assert served_by(seen) == {"1.5": 1}
    assert seen["counts"]["fell_through"] == {}
    until = datetime.fromisoformat(ref["ipc"]["valid_until"])
    lease_and_grace, millisecond = timedelta(seconds=60 + 30), timedelta(milliseconds=1)
    assert before - millisecond <= until - lease_and_grace <= after
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(str(space_of(config).socket))
        asking.send(orjson.dumps({"take": ref["ipc"]["shm_name"]}))
        answer, (number,), _, _ = socket.recv_fds(asking, 100, 1)
    assert answer == b"ok"
    assert fcntl.fcntl(number, 1034) & ALL_SEALS == ALL_SEALS
    for attack in (lambda: os.ftruncate(number, 0), lambda: os.pwrite(number, b"x", 64)):
        with pytest.raises(PermissionError):
            attack()
    os.close(number)


def test_without_the_setting_no_broker_is_asked(node: Node) -> None:
    config = node.config("shm")
    node.broker(config)
    writer, reader = node.start(config), node.start(config)

    ref = writer.put(1000)
    seen = reader.read(ref)

    assert [f"/{path.name}" for path in regions(config)] == [ref["ipc"]["shm_name"]]
    assert seen["digest"] == digest(rows(1000))
    assert seen["mapped"].startswith(str(regions(config)[0]))
    assert served_by(seen) == {"1.5": 1}
    sealing = node.start(node.config("memfd"))  # but hints of either kind are followed
    assert served_by(sealing.read(ref)) == {"1.5": 1}
    assert served_by(reader.read(sealing.put(1001))) == {"1.5": 2}


def test_all_processes_and_the_broker_have_one_budget(node: Node) -> None:
    config = node.config("memfd", tier_15_node_budget_mb=1)
    files = node.config("shm", tier_15_node_budget_mb=1)
    node.broker(config)
    one, other, filing = node.start(config), node.start(config), node.start(files)

    taken = [process.put(3000 + n) for n, process in enumerate((one, other, filing, one))]

    sizes = [ref["byte_length"] for ref in taken]
    assert sum(sizes[:3]) < MB < sum(sizes)
    assert [is_sealed(ref) for ref in taken] == [True, True, False, False]
    assert [ref["ipc"] is not None for ref in taken] == [True, True, True, False]
    assert one.counts()["events"]["exhausted"] == 1
    used = {process.counts()["bytes_in_use"]["1.5"] for process in (one, other, filing)}
    assert len(used) == 1
    assert sum(sizes[:3]) < used.pop() <= MB
    wait_for(lambda: node.told_by_broker().get("events", {}).get("exhausted") == 1)
    assert node.told_by_broker()["regions"] == 2
    seen = other.read(taken[3])  # and what found no room is read from the store
    assert seen["digest"] == digest(rows(3003))
    assert served_by(seen) == {"3": 1}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_region_outlives_its_writers_kill_and_goes_when_its_time_is_over(
    node: Node, carrier: str
) -> None:
    lease_s = 9 if carrier == "memfd" else 3  # enough to read it once, also on a busy machine
    config = node.config(carrier, lease_seconds=lease_s, tier_15_grace_seconds=1)
    if carrier == "memfd":
        node.broker(config)
    writer, reader = node.start(config), node.start(config)
    ref = writer.put(1000)

    writer.kill()
    seen = reader.read({**ref, "ipc": {**ref["ipc"], "valid_until": "2999-01-01T00:00:00+00:00"}})
    assert seen["digest"] == digest(rows(1000))
    assert served_by(seen) == {"1.5": 1}

    until = datetime.fromisoformat(ref["ipc"]["valid_until"])
    wait_for(lambda: datetime.now(UTC) > until)
    if carrier == "memfd":  # the broker lets go by itself
        wait_for(lambda: node.told_by_broker().get("regions") == 0)
        assert node.told_by_broker()["events"]["expired"] == 1
        later = node.start(config)
    else:  # a process that starts finds what the killed one left
        later = node.start(config)
        assert later.counts()["events"]["swept"] == 1
    assert not regions(config)
    assert later.counts()["bytes_in_use"]["1.5"] == 0
    assert reader.tell({"again": True})["digest"] == digest(rows(1000))  # mapped, it stays
    found = later.read(ref)
    assert found["digest"] == digest(rows(1000))
    assert served_by(found) == {"3": 1}
    assert found["counts"]["fell_through"] == {"expired": 1}
    forever = {**ref["ipc"], "valid_until": "2999-01-01T00:00:00+00:00"}
    found = later.read({**ref, "ipc": forever})
    assert found["counts"]["fell_through"] == {"expired": 1, "gone": 1}
    assert served_by(found) == {"3": 2}


def test_a_killed_broker_costs_nothing_but_time(node: Node) -> None:
    config = node.config("memfd", tier_15_node_budget_mb=1)
    broker = node.broker(config)
    writer, reader, late = (node.start(config) for _ in range(3))
    ref = writer.put(5000)
    assert reader.read(ref)["mapped"].startswith("/memfd:noetl")

    broker.kill()
    broker.wait()

    assert reader.tell({"again": True})["digest"] == digest(rows(5000))
    seen = late.read(ref)
    assert seen["digest"] == digest(rows(5000))
    assert served_by(seen) == {"3": 1}
    assert seen["counts"]["fell_through"] == {"no broker": 1}
    instead = writer.put(1001)  # as a file
    assert instead["ipc"] is not None
    assert not is_sealed(instead)
    assert served_by(late.read(instead)) == {"3": 1, "1.5": 1}

    node.broker(config)  # in spite of the socket that was left

    assert writer.counts()["bytes_in_use"]["1.5"] < MB // 4  # what the dead one kept is gone
    numbers = iter(range(1002, 2000))
    # A broker that was slow to answer rests for 10 s; what is put meanwhile must leave it room.
    wait_for(lambda: is_sealed(writer.put(next(numbers))), every_s=1.0)
    seen = late.read(ref)
    assert seen["digest"] == digest(rows(5000))
    assert seen["counts"]["fell_through"] == {"no broker": 1, "gone": 1}
    assert len(list(space_of(config).folder.glob("*.sock"))) == 1


@pytest.mark.parametrize("carrier", CARRIERS)
def test_two_stacks_on_a_machine_share_nothing(node: Node, carrier: str) -> None:
    one, other = (node.config(carrier, store) for store in ("one", "other"))
    if carrier == "memfd":
        node.broker(one)
    mine, stranger = node.start(one), node.start(other)
    ref = mine.put(1000)
    assert stranger.put(1000)["ipc"]["shm_name"] != ref["ipc"]["shm_name"]

    seen = stranger.read(ref)

    assert seen["counts"]["fell_through"] == {"foreign": 1}
    assert served_by(seen) == {"3": 1}
    assert seen["digest"] == digest(rows(1000))
    assert stranger.counts()["bytes_in_use"]["1.5"] == mine.counts()["bytes_in_use"]["1.5"] > 0
    stranger.ear.close()
    stranger.process.join()  # it ends in peace, and takes its own with it
    assert served_by(mine.read(ref)) == {"1.5": 1}


SQUATTER = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
print("there", flush=True)
while True:
    try:
        connection, _ = listener.accept()
        packet = connection.recv(100)
    except OSError:
        continue
    print(len(packet), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_a_broker_of_another_user_is_given_nothing(node: Node) -> None:
    config = node.config("memfd")
    node.folder.chmod(0o755)
    (node.folder / "shm").chmod(0o1777)
    squatter = subprocess.Popen(
        ["/usr/bin/env", "python3", "-c", SQUATTER, str(space_of(config).socket)],
        stdout=subprocess.PIPE,
        user=65534,
        env={"PATH": os.defpath},
    )
    node.ends.enter_context(squatter)
    node.ends.callback(squatter.kill)
    assert squatter.stdout is not None
    if squatter.stdout.readline() != b"there\n":
        pytest.skip("no interpreter that another user may run")

    ref = node.start(config).put(1000)

    assert ref["ipc"] is not None
    assert not is_sealed(ref)
    assert served_by(node.start(config).read(ref)) == {"1.5": 1}
    assert squatter.stdout.readline() == b"0\n"  # we left without a word
