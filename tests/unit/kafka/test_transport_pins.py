"""Methods of Faust, mode and aiokafka that the transport overrides or relies on, by digest.

After an upgrade read each method that a test names, adapt the transport, and run
`python tests/unit/kafka/test_transport_pins.py`, which prints the table for this file.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = ("faust", "mode", "aiokafka")
DISTRIBUTIONS = ("faust-streaming", "mode-streaming", "aiokafka")
TRANSPORT = "streams.kafka.transport"
Pins = Mapping[str, Mapping[str, str]]

# fmt: off
PINS: Pins = {
    "aiokafka.consumer.consumer:AIOKafkaConsumer": {
        "assignment": "d327de7a3898e92f", "beginning_offsets": "8da4f7758ad4eef9",
        "commit": "79b057d88220e5a2", "committed": "d8706147ab1573ad",
        "end_offsets": "f4b19078581881ba", "last_stable_offset": "ed875fe136b96e88",
        "seek": "a9430f1f3b9ac419", "seek_to_committed": "f6cd85c8b70a4ccf",
        "start": "2f1ba70443327538", "stop": "bc5da9c98595299a",
    },
    "aiokafka.consumer.fetcher:FetchResult": {
        "_update_position": "83fb1473bf10027b", "getall": "3e717e30de5068d5",
    },
    "aiokafka.consumer.fetcher:Fetcher": {
        "__init__": "bf21ecb7e0f210b7", "_create_fetch_waiter": "61d840568746477e",
        "_fetch_requests_routine": "2a8ec5932644c9b0", "close": "1cd24bc1c442149e",
        "fetched_records": "be4348896b9b66af", "seek_to": "f0ba6aba6c22ef83",
    },
    "aiokafka.consumer.group_coordinator:GroupCoordinator": {
        "_GroupCoordinator__coordination_routine": "f814463c6b44a195",
        "_coordination_routine": "75273e127d4a4f5d", "_on_join_complete": "0b0b3d204b408f3c",
        "_on_join_prepare": "4d9524afc0ee2c2f", "_push_error_to_user": "743ff515bd7e2e38",
        "check_errors": "ba6ca51ad34838d9", "close": "f30d831089456312",
        "request_rejoin": "f70a261c91c38cb5",
    },
    "aiokafka.consumer.subscription_state:Assignment": {"state_value": "183fea82ef48f3e6"},
    "aiokafka.consumer.subscription_state:SubscriptionState": {
        "abort_waiters": "fa0941110268427d", "begin_reassignment": "c141fe3db38455c0",
        "fetch_context": "ff2a654dca239cfe", "reassignment_in_progress": "6876e75ff981ea26",
    },
    "aiokafka.consumer.subscription_state:TopicPartitionState": {
        "has_valid_position": "ebe7c39d949a1f18", "position": "816b6b289bd14f5c",
    },
    "faust.app.base:App": {
        "__init__": "698e2bf236c67369", "_consumer_wait_empty": "6bc313c48c064b16",
        "_on_agent_error": "bdd12f286de64429", "_on_partitions_assigned": "de932b7927db85b3",
        "_on_partitions_revoked": "d5c895bbe57dc73a",
        "_on_rebalance_when_stopped": "1b172d9af8ff4eb6", "_stop_consumer": "55854a5de12c3f52",
        "_stop_fetcher": "68494554c248efcc", "on_rebalance_end": "b7ff69e1e3772f30",
        "on_rebalance_start": "5c1e23de30674082", "on_start": "480d70c6c72d042d",
        "on_started": "c03627f2dc44a1dd", "on_stop": "bfe5a933defb2324",
    },
    "faust.serializers.schemas:Schema": {"compile": "d46eec5ce3195b2c"},
    "faust.stores.rocksdb:Store": {
        "_open_for_partition": "1dc4e0113d67379d", "revoke_partitions": "3f85447a24fc34ff",
        "stop": "2e98db0eb7c7582b",
    },
    "faust.tables.base:Collection": {
        "_new_store": "914a2bda605d38f5", "on_start": "daddcc354ad0b328",
    },
    "faust.tables.manager:TableManager": {
        "__init__": "f13ed9db7ccd1a53", "_update_channels": "88e3941facc934d6",
        "on_partitions_revoked": "382852adff42ab99", "on_rebalance": "2d2c23a07bf54328",
        "on_start": "365dd25fbc0e0684", "on_stop": "351be149c0360de5",
        "recovery": "f0bf5de78b4c3d23",
    },
    "faust.tables.recovery:Recovery": {
        "_build_highwaters": "91b4cc0d3724ae7b", "_restart_recovery": "6bd8a8558a2dffe4",
        "_resume_streams": "d986a6710c1aca98", "_set_recovery_ended": "84badf3f2cfe0d02",
        "_set_recovery_started": "bcfebf81ae13fc75", "_slurp_changelogs": "7825c7e50f766d5a",
        "on_partitions_revoked": "161b5e997f7cbfef", "on_rebalance": "aa4d997a1795ceae",
    },
    "faust.transport.conductor:Conductor": {"_compile_message_handler": "9fbc0538097aa4ec"},
    "faust.transport.consumer:Consumer": {
        "_commit_handler": "4e5da5df073082d6", "_commit_livelock_detector": "af196ff46fd42a14",
        "_drain_messages": "44a2500309e83c63", "_get_active_partitions": "b24897f3c7afdb5d",
        "_set_active_tps": "401f4dc883191950", "commit": "a354437baaa08bf8",
        "force_commit": "cc094614d22c70fb", "maybe_wait_for_commit_to_finish": "d687f63a0b5ef0c5",
        "on_partitions_assigned": "29ce96596f05a18c", "on_partitions_revoked": "d04b7ae72c6fc206",
        "on_stop": "45b1d2210ce2b526", "on_task_error": "0d7f23d0bb2607c1",
        "pause_partitions": "27a1c94bdacd54de", "perform_seek": "0e8c130ff4b0afd8",
        "resume_flow": "db59630f25b5819b", "resume_partitions": "afe6b7c02a41d63c",
        "stop_flow": "cf7e875a2b0d40e8", "wait_empty": "e4662fe24f094819",
    },
    "faust.transport.consumer:ConsumerThread": {
        "on_partitions_assigned": "e59e8dda43724bd4", "on_partitions_revoked": "c44013f1259ca964",
    },
    "faust.transport.consumer:Fetcher": {
        "_fetcher": "68f894f0b577d810", "on_stop": "21f3bae9b455762b",
    },
    "faust.transport.consumer:ThreadDelegateConsumer": {
        "assignment": "58f5bf9281fb8ef9", "threadsafe_partitions_assigned": "50fac26841ad9934",
        "threadsafe_partitions_revoked": "6c55d67e9eb06ca5",
    },
    "faust.transport.drivers.aiokafka:AIOKafkaConsumerThread": {
        "_commit": "932852ce7a23f658", "_create_consumer": "a4dc6ba0681a298c",
        "_create_worker_consumer": "c2701bfc3e6f6cad", "_ensure_consumer": "ff4a4c693b7ec63f",
        "_fetch_records": "39a2c6c79fc1455a", "assignment": "61f105132ae619f6",
        "close": "d22efc59a1df0c7a", "commit": "d31c8558ba25310c", "getmany": "26fc5fc9f3b667e1",
        "on_start": "38b4e8bd1e10723a", "on_thread_stop": "8dfc004e258b6c25",
        "seek_to_committed": "775ab0adc4b052ab", "subscribe": "74f90b8c8cbc6384",
        "topic_partitions": "8e5084fa9734ed33",
    },
    "faust.transport.drivers.aiokafka:Consumer": {
        "_new_consumer_thread": "0870ec53dea75083", "on_stop": "173f86b366f3608e",
    },
    "faust.transport.drivers.aiokafka:ConsumerRebalanceListener": {
        "on_partitions_assigned": "1c1f8406ad3698a6", "on_partitions_revoked": "348c3aec879faf80",
    },
    "faust.transport.drivers.aiokafka:Producer": {"_settings_extra": "a4c7bc41b6382223"},
    "mode.services:Service": {
        "_crash": "7bc0c709a151d556", "_execute_task": "2a976a30f01cbbef",
        "crash": "14980000465df0af", "stop": "e17cd2b6bd01e861", "wait_first": "feade6a31f8a6789",
    },
    "mode.threads:MethodQueue": {
        "_process_enqueued": "d88a086d148c8012", "call": "57bd4157ba4e349f",
    },
    "mode.threads:QueueServiceThread": {
        "call_thread": "479edda75b54734b", "on_thread_stop": "b58a5dbce24fd815",
    },
    "mode.threads:ServiceThread": {
        "_serve": "67809eae09573ac7", "_shutdown_thread": "d7377862e73421a2",
        "_start_thread": "a06373478446fb61", "crash": "68a766aadc5f7196",
        "start": "f11841038a033a05", "stop": "32d026539c3665b2",
    },
    "mode.threads:WorkerThread": {
        "__init__": "2ded78c36c50152c", "run": "1b649242a70c4df3", "stop": "c80d8f1597fa362c",
    },
}
# fmt: on


def overridden() -> Iterator[tuple[str, str]]:
    """Yield each method that a class of the transport overrides: its class and its name."""
    package = import_module(TRANSPORT)
    for found in pkgutil.iter_modules(package.__path__, f"{TRANSPORT}."):
        for cls in vars(import_module(found.name)).values():
            if inspect.isclass(cls) and cls.__module__ == found.name:
                yield from _overridden_by(cls)


def _overridden_by(cls: type) -> Iterator[tuple[str, str]]:
    for name in vars(cls):
        for base in cls.__mro__[1:]:
            if base.__module__.partition(".")[0] in LIBRARIES and name in vars(base):
                if inspect.isfunction(_function(vars(base)[name])):
                    yield f"{base.__module__}:{base.__qualname__}", name
                break


def _function(member: Any) -> Any:
    """Return the function of a method, a property or a task of a service."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    return inspect.unwrap(getattr(member, "fun", member))


def digest(owner: str, name: str) -> str:
    """Return the start of the SHA-256 of a method's source, or that the method is missing."""
    module, _, cls = owner.partition(":")
    member = vars(getattr(import_module(module), cls)).get(name)
    if member is None:
        return "no such method"
    return sha256(inspect.getsource(_function(member)).encode()).hexdigest()[:16]


def table(pins: Pins) -> str:
    """Return a table as it is written in this file."""
    lines = []
    for owner, methods in sorted(pins.items()):
        entries = " ".join(f'"{name}":§"{digest(owner, name)}",' for name in sorted(methods))
        rows = textwrap.wrap(entries, 92, break_long_words=False, break_on_hyphens=False)
        if len(rows) == 1 and len(one := f'    "{owner}": {{{rows[0][:-1]}}},') <= 100:
            lines.append(one)
        else:
            lines += [f'    "{owner}": {{', *(f"        {row}" for row in rows), "    },"]
    return "\n".join(lines).replace("§", " ")


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_installed_version_is_the_one_of_the_lock(name: str) -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.search(rf"^{name}==(\S+)", lock, re.MULTILINE)
    assert pinned is not None, f"requirements.lock does not pin {name}"
    assert version(name) == pinned[1]


def test_no_method_changed_that_the_transport_overrides_or_relies_on() -> None:
    changed = [
        f'{owner}.{name}: "{found}"'
        for owner, methods in PINS.items()
        for name, pinned in methods.items()
        if (found := digest(owner, name)) != pinned
    ]
    assert not changed, "read them, adapt the transport, then pin:\n" + "\n".join(changed)


def test_each_overridden_method_is_pinned() -> None:
    missing = [
        f'{owner}.{name}: "{digest(owner, name)}"'
        for owner, name in overridden()
        if name not in PINS.get(owner, {})
    ]
    assert not missing, "overridden and not pinned:\n" + "\n".join(missing)


def test_a_changed_method_has_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    services = import_module("mode.services")

    def _crash(self: object, reason: BaseException) -> None:
        """Do nothing."""

    before = digest("mode.services:Service", "_crash")
    monkeypatch.setattr(services.Service, "_crash", _crash)
    assert digest("mode.services:Service", "_crash") != before


if __name__ == "__main__":
    pins: dict[str, dict[str, str]] = {owner: dict(methods) for owner, methods in PINS.items()}
    for owner, name in overridden():
        pins.setdefault(owner, {})[name] = ""
    sys.stdout.write(table(pins) + "\n")
