"""Records executions for `replay`: `python -m tests.histories.record` adds those that are missing.

It never changes what was recorded: such events are in logs, and their states are what later
folds are compared with. A new scenario gets a new name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

import orjson

import streams.dev.simulator.world
import tests.support.planner.memory
from streams.dev.simulator.run import simulate
from streams.events.model import Event, Json
from streams.kafka.work.item import WorkItem
from streams.log.memory import MemoryEventStore
from streams.log.worker_incarnations import begin
from streams.payload.port import Scope
from streams.playbook.expressions import compile_value
from streams.playbook.model import Cursor, FramePolicy, Mode
from streams.replay.fork.forks import Forks
from streams.replay.memory import MemoryStoredLog
from streams.replay.verified import VerifiedLog
from tests.histories.replay import FOLDER, Leaves, Replay
from tests.support.events.examples import codec
from tests.support.planner.memory import World, loop, playbook, step
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeTool, http_error, ok

SIMULATED = (3, 8, 10, 21)
"""Seeds of the simulator: processes die, messages are late or repeated, rows call playbooks."""
LARGE = "x" * 200_000

COMMANDS = """
metadata: {path: tests/commands}
workload: {n: 20}
workflow:
  - step: start
    set: {greeting: hello}
    next: [{step: double}]
  - step: double
    tool:
      - first: {kind: noop, data: "{{ workload.n * 2 }}"}
      - second: {kind: noop, data: {twice: "{{ first.data + 0 }}", said: "{{ ctx.greeting }}"}}
    set: {twice: "{{ double.twice }}"}
    next:
      - {step: small, when: "{{ ctx.twice < 10 }}"}
      - {step: skipped, when: "{{ ctx.twice >= 10 }}", args: {limit: 10}}
  - step: small
    tool: {kind: noop}
  - step: skipped
    when: "{{ args.limit > 100 }}"
    tool: {kind: noop}
    next: [{step: last}]
  - step: last
    tool: {kind: noop, data: {sum: "{{ ctx.twice + 2 }}"}}
return: {sum: "{{ last.sum }}"}
"""
HANDLED = """
metadata: {path: tests/handled}
workflow:
  - step: flaky
    tool:
      kind: http
      eval:
        - {expr: "{{ outcome.status == 'error' }}", do: retry, attempts: 3, delay: 0.001}
        - else: {do: continue, set_ctx: {tries: "{{ outcome.data }}"}}
    next: [{step: bad}]
  - step: bad
    on_error: continue
    tool: {kind: http, fail: true}
    next: [{step: asked}]
  - step: asked
    tool: {kind: http, fail: true}
    next: [{step: end, when: "{{ asked.status == 'error' }}"}]
  - step: end
    tool: {kind: noop, data: "{{ ctx.tries }}"}
"""
ROWS = """
metadata: {path: tests/rows}
workload: {rows: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}
workflow:
  - step: each
    on_error: continue
    loop:
      in: "{{ workload.rows }}"
      iterator: n
      spec: {mode: parallel, max_in_flight: 2}
      frame_policy: {size: 4, row_concurrency: 2}
    tool:
      - fetch:
          kind: http
          n: "{{ iter.n }}"
          eval: [{expr: "{{ outcome.status == 'error' }}", do: fail}]
      - keep: {kind: noop, data: {n: "{{ iter.n }}", got: "{{ fetch }}"}}
    next: [{step: count}]
  - step: count
    tool: {kind: noop, data: "{{ each.data | length }}"}
"""
FAN = """
metadata: {path: tests/fan}
workflow:
  - step: each
    loop: {in: [1, 2, 3], iterator: n, spec: {mode: fanout, max_in_flight: 2}}
    tool: {kind: noop, data: "{{ iter.n * 10 }}"}
    next: [{step: sum}]
  - step: sum
    tool: {kind: noop, data: "{{ each.data | sum }}"}
return: "{{ sum.data }}"
"""
ORDERED = """
metadata: {path: tests/ordered}
workload: {s: ""}
workflow:
  - step: each
    loop: {in: [1, 2, 3], spec: {mode: sequential}, frame_policy: {size: 1}}
    tool:
      - a:
          kind: http
          eval:
            - else:
                do: continue
                set_ctx:
                  text: "{{ ctx.text | default(workload.s) ~ outcome.data }}"
                  n: "{{ iter.item }}"
    next: use
  - step: use
    tool: {kind: noop, data: "{{ [ctx.text | length, ctx.n] }}"}
return: "{{ use.data }}"
"""
SPILLED = """
metadata: {path: tests/spilled}
workflow:
  - step: fetch
    tool: {kind: http}
    set: {text: "{{ fetch.data }}", n: 1}
    next: [{step: use, args: {same: "{{ ctx.text }}", n: 2}}]
  - step: use
    tool:
      - whole: {kind: http, eval: [{else: {do: continue, set_ctx: {text: "{{ outcome.data }}"}}}]}
      - last: {kind: noop, data: "{{ [ctx.text | length, args.same | length, args.n] }}"}
    next: again
  - step: again
    set: {text: small}
    next: each
  - step: each
    loop: {in: "{{ [fetch.data, 'b'] }}", frame_policy: {size: 1}}
    tool: {kind: noop, data: "{{ iter.item }}"}
return: "{{ fetch.data }}"
"""
SINKS = """
metadata: {path: tests/sinks}
workflow:
  - step: each
    loop: {in: [1, 3], iterator: n, frame_policy: {size: 1}}
    tool: {kind: http, n: "{{ iter.n }}"}
    sink: {storage: file, on: error}
sink: {storage: file, on: always, data: "{{ this.error.step }}"}
"""
FORKED = """
metadata: {path: tests/forked}
workload: {bad: true}
workflow:
  - step: fetch
    tool: {kind: http}
    set: {text: "{{ fetch.data }}", n: 1}
    next: [{step: send, args: {text: "{{ fetch.data }}"}}]
  - step: send
    tool: {kind: http, fail: "{{ workload.bad }}", text: "{{ args.text | length }}"}
    next: [{step: last}]
  - step: last
    tool: {kind: noop, data: "{{ [ctx.text | length, ctx.n, fetch.data | length] }}"}
return: "{{ last.data }}"
"""
OUTER = """
metadata: {path: tests/outer}
workflow:
  - step: call
    tool: {kind: playbook, path: tests/inner, workload: {n: 2}}
    next: [{step: each}]
  - step: each
    loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel}, frame_policy: {size: 2}}
    tool: {kind: playbook, path: tests/inner, workload: {n: "{{ iter.n }}"}}
    next: [{step: bad}]
  - step: bad
    tool: {kind: playbook, path: tests/failing}
return: "{{ call.value }}"
"""
INNER = """
metadata: {path: tests/inner}
workflow:
  - step: double
    tool: {kind: noop, data: {twice: "{{ workload.n * 2 }}"}}
return: {value: "{{ double.twice }}"}
"""
FAILING = """
metadata: {path: tests/failing}
workflow:
  - step: bad
    when: "{{ workload.nothing }}"
"""


def _tasks() -> str:
    """Return a playbook with a step whose tasks say more than its event can carry."""
    spec = "{result: {store: s3, select: [{path: $.a, as: a}]}}"
    tasks = "\n".join(f"      - t{n}: {{kind: http, spec: {spec}}}" for n in range(9))
    read = " + ".join(f"(fetch.t{n}.a | length)" for n in range(9))
    return f"""
metadata: {{path: tests/tasks}}
workflow:
  - step: fetch
    tool:
{tasks}
      - last: {{kind: noop}}
    next: use
  - step: use
    tool: {{kind: noop, data: "{{{{ {read} }}}}"}}
return: "{{{{ use.data }}}}"
"""


async def _run(*texts: str, answer: Any = None) -> None:
    async with whole(*texts, http=FakeTool(answer or (lambda *_: ok(LARGE)))) as made:
        assert (await made.result()).has_ended


def _fails(config: Mapping[str, Any], call: Any) -> Any:
    return http_error(503) if config.get("fail") or config.get("n") in (3, 7) else ok("here")


async def _handled() -> None:
    tool = FakeTool(lambda config, _: http_error(500) if config.get("fail") else ok(3))
    tool.first = [http_error(503), http_error(503)]
    async with whole(HANDLED, http=tool) as made:
        await made.result()


async def _sinks() -> None:
    """A loop that fails, and sinks that persist its failure before the execution ends."""
    sink = FakeTool(lambda *_: ok({"store": "file", "key": "k", "range": ""}))
    async with whole(SINKS, http=FakeTool(_fails), sink=sink) as made:
        assert (await made.result()).status == "FAILED"


async def _say(world: World, type: str, item: WorkItem, **fields: Any) -> None:
    """Append what the owner of an item says of it."""
    meta: dict[str, Any] = {f"{item.kind}_id": str(item.entity_id), "attempt": item.attempt}
    if item.kind == "frame":
        meta |= {"stage_id": str(item.stage_id)}
    if type == "failed":
        meta |= {"loop_id": str(item.loop_id), "rows": 0, "failed_rows": 0}
    meta |= {"worker": "w1", **fields.pop("meta", {})}
    await world.append(f"{item.kind}.{type}", node_name=item.step, meta=meta, **fields)
    await world.pump()


def _taken(world: World) -> list[WorkItem]:
    """Return the newest item of each command and frame, published however often."""
    return list({item.entity_id: item for item in world.take()}.values())


async def _finish(world: World) -> None:
    """Do all work there is, well."""
    while items := _taken(world):
        for item in items:
            await (world.commit(item) if item.kind == "frame" else world.complete(item, 1))


async def _leases() -> None:
    """A command and frames that are lost, handed back, kept alive and tried again."""
    each = step("each", loop=loop(list(range(25)), max_in_flight=2), on_error="continue")
    world = World(playbook(step("one", "each"), each))
    await world.start({"a": 1}, reply_to="answers")
    (item,) = _taken(world)
    await world.claim(item)
    await _say(world, "heartbeat", item, meta={"lease_seconds": 60})
    await world.after(120)
    (item,) = _taken(world)
    await world.claim(item)
    await _say(world, "released", item)
    await world.after(1)
    (item,) = _taken(world)
    await world.complete(item, {"a": 2}, ctx={"n": 1})
    first, second = _taken(world)
    await world.claim(first)
    cursor = {"kind": "list", "from": 0, "to": 10, "at": 4}
    await _say(world, "heartbeat", first, meta={"lease_seconds": 60}, context={"cursor": cursor})
    await world.claim(second, worker="w2")
    failed = {"status": "error", "meta": {"worker": "w2"}}
    await _say(world, "failed", second, error="the disk is full", **failed)
    await world.after(120)
    for item in _taken(world):
        await world.claim(item)
        await _say(world, "released", item, context={"cursor": item.cursor})
    await world.after(120)
    (first, *others) = _taken(world)
    rest = {**(first.cursor or {}), "from": 4}
    await world.commit(first, rows=4, failed=1, continues=True, cursor=rest)
    for item in others:
        await world.commit(item, ctx={"n": 2}, retries=3)
    await _finish(world)
    assert (await world.plan()).has_ended


async def _lost_frames() -> None:
    """Frames whose leases run out, and whose worker restarts."""
    world = World(playbook(step("each", loop=loop(list(range(25)), max_in_flight=2))))
    await begin(world.incarnations, "worker-0/a")
    await world.start()
    first, second = _taken(world)
    await world.claim(first, worker="worker-0/a")
    await world.claim(second, worker="w2")
    await begin(world.incarnations, "worker-0/b")
    await world.after(1)
    (first,) = _taken(world)
    await world.commit(first)
    await world.after(120)
    await _finish(world)
    assert (await world.plan()).has_ended


async def _given_up() -> None:
    """A frame whose attempts all fail ends its stage and its execution."""
    world = World(playbook(step("each", loop=loop(list(range(20))))), max_attempts=2)
    await world.start()
    for _ in range(2):
        for item in _taken(world):
            await world.claim(item)
            await _say(world, "failed", item, status="error", error="the tool is broken")
        await world.after(60)
    await _finish(world)
    assert (await world.plan()).has_ended


async def _silent() -> None:
    """A command whose owners all fall silent fails its step."""
    world = World(playbook(step("one")), max_attempts=2)
    await world.start()
    for _ in range(2):
        (item,) = _taken(world)
        await world.claim(item)
        await world.after(120)
    assert (await world.plan()).has_ended


async def _cancelled() -> None:
    """Everything is open when somebody cancels: a claimed frame, a waiting one, a command."""
    each = step("each", loop=loop(list(range(30)), max_in_flight=3))
    world = World(playbook(step("both", "each", "one", inclusive=True), each, step("one")))
    await world.start()
    (item,) = _taken(world)
    await world.complete(item)
    open_items = _taken(world)
    assert {item.kind for item in open_items} == {"frame", "command"}
    for item in open_items[:2]:
        await world.claim(item)
    await world.append("execution.cancelled", status="CANCELLED", meta={"by": "ana"})
    await world.pump()


async def _suspended() -> None:
    """Suspended with a frame in flight, which is committed; resumed, and done."""
    world = World(playbook(step("each", loop=loop(list(range(40))))), window=2)
    await world.start()
    first, second = _taken(world)
    await world.claim(second)
    await world.suspend("a pause of the source")
    await world.commit(first)
    await world.after(300)
    await world.resume()
    await world.after(1)
    await _finish(world)
    assert (await world.plan()).has_ended


async def _cursor() -> None:
    """A loop over a query: a command finds its windows, and its frames exhaust them."""
    query = {"auth": "pg", "query": "SELECT id FROM t", "key": "id"}
    keyset = Cursor(kind="postgres", form="keyset", config=compile_value(query))
    each = step("each", loop=loop(None, cursor=keyset, policy=FramePolicy(size=10)))
    world = World(playbook(each))
    await world.start()
    (item,) = world.take()
    assert item.tool == "cursor.plan"
    await world.complete(item, {"boundaries": ["10", "20"], "type": "bigint"})
    while items := world.take():
        for frame in items:
            await world.commit(frame, rows=10)
    assert (await world.plan()).has_ended


async def _claims() -> None:
    """A loop over rows that its frames claim until none is left."""
    claim = Cursor(kind="postgres", form="claim", config=compile_value({"auth": "pg"}))
    each = step("each", loop=loop(None, cursor=claim, max_in_flight=2))
    world = World(playbook(each))
    await world.start()
    for rows in (10, 10, 3, 0, 0):
        items = world.take()
        for frame in items:
            await world.commit(frame, rows=rows, exhausted=rows < 10)
    assert (await world.plan()).has_ended


async def _shards() -> None:
    """Shards of a fan-out that close early, with a failed row."""
    fanout = loop(list(range(10)), mode=Mode.FANOUT, policy=FramePolicy(size=5))
    world = World(playbook(step("each", loop=fanout, on_error="continue")))
    await world.start()
    first, second = _taken(world)
    rest = {"kind": "list", "from": 2, "to": 5}
    await world.commit(first, rows=2, failed=1, continues=True, cursor=rest)
    await world.commit(second)
    await _finish(world)
    assert (await world.plan()).has_ended


async def _parts() -> None:
    """A shard whose second part is checkpointed, with a failed row in its first."""
    fanout = loop(list(range(10)), mode=Mode.FANOUT, policy=FramePolicy(size=5))
    world = World(playbook(step("each", loop=fanout, on_error="continue")))
    await world.start()
    first, second = _taken(world)
    rest = {"kind": "list", "from": 2, "to": 5}
    await world.commit(first, rows=2, failed=1, continues=True, cursor=rest)
    await world.commit(second)
    (item,) = _taken(world)
    await world.claim(item)
    await world.checkpoint(item, 1, None)
    await world.after(120)
    await _finish(world)
    assert (await world.plan()).fanouts["each"]["failed"] == 1


async def _expired() -> None:
    """A stored result whose time is over after its execution's end."""
    spec = "{result: {store: {kind: s3, ttl: 1h}}}"
    tool = f"[{{a: {{kind: http, spec: {spec}}}}}]"
    text = f"metadata: {{path: tests/ttl}}\nworkflow: [{{step: get, tool: {tool}}}]\n"
    async with whole(text, http=FakeTool(lambda *_: ok(LARGE))) as made:
        await made.result()
        (stored,) = await made.events("result.stored")
        made.world.clock.advance(4000)
        ended = {"result_id": stored.meta["result_id"], "reason": "ttl"}
        await made.world.append("result.expired", meta=ended)


async def _checkpoints() -> None:
    """Rows one by one, then a frame whose first rows are checkpointed before it is lost."""
    one = step("one", "each", loop=loop(["a", "b"], policy=None, mode=Mode.SEQUENTIAL))
    each = step("each", loop=loop(list(range(10)), mode=Mode.SEQUENTIAL))
    world = World(playbook(one, each))
    await world.start()
    for _ in range(2):
        (item,) = _taken(world)
        await world.commit(item, vars={"seen": 1})
    (item,) = _taken(world)
    await world.claim(item)
    await world.checkpoint(item, 6, None, 1, ctx={"n": 6}, vars={"sum": 6}, retries=2)
    await world.after(120)
    (item,) = _taken(world)
    await world.commit(item)
    assert (await world.plan()).has_ended


async def _forked() -> None:
    """A failed execution, forked at its end with other values, of the workload and of `ctx`."""
    fails = lambda config, _: http_error(500) if config.get("fail") else ok(LARGE)  # noqa: E731
    async with whole(FORKED, http=FakeTool(fails)) as made:
        source, world, stored = await made.result(), made.world, MemoryStoredLog()
        for event, envelope in RECORDED.get():
            stored.mirror(event, envelope)
        log = VerifiedLog(stored, codec())
        forks = Forks(stored, log, world.playbooks, world.payloads, world.clock)
        scope = Scope(source.tenant_id, source.organization_id)
        values: dict[str, Json] = {"bad": False, "ctx.n": 5}
        found = await forks.prepare(source.execution_id, scope, source.seq, values)
        world.execution_id += 4096
        await forks.start(found, world.execution_id, by="ana", into=world.store)
        assert (await made.result()).status == "COMPLETED"


def _simulated(seed: int) -> Callable[[], None]:
    def run() -> None:
        summary = simulate(range(seed, seed + 1))
        assert not summary.failures, summary.failures

    return run


SCENARIOS: dict[str, Callable[[], Awaitable[None]]] = {
    "commands": lambda: _run(COMMANDS),
    "handled_failures": _handled,
    "failed_rows": lambda: _run(ROWS, answer=_fails),
    "fanout": lambda: _run(FAN),
    "fanout_in_parts": _shards,
    "fanout_checkpointed": _parts,
    "persisted_failures": _sinks,
    "sequential_large_ctx": lambda: _run(ORDERED),
    "spilled_values": lambda: _run(SPILLED),
    "spilled_tasks": lambda: _run(
        _tasks(), answer=lambda *_: ok({"a": "x" * 7_000, "b": "y" * 40_000})
    ),
    "cursor": _cursor,
    "claims": _claims,
    "nested": lambda: _run(OUTER, INNER, FAILING),
    "leases": _leases,
    "lost_frames": _lost_frames,
    "checkpoints": _checkpoints,
    "given_up": _given_up,
    "silent": _silent,
    "cancelled": _cancelled,
    "suspended": _suspended,
    "expired_result": _expired,
    "forked": _forked,
}
RECORDED: ContextVar[list[tuple[Event, bytes]]] = ContextVar("recorded")
"""What the scenario that runs has stored so far."""


@contextmanager
def recording() -> Iterator[list[tuple[Event, bytes]]]:
    """Collect each event that a log in memory stores, with its envelope."""
    found: list[tuple[Event, bytes]] = []

    class Recording(MemoryEventStore):
        def __init__(self, *, mirror: Any = None, **options: Any) -> None:
            def both(event: Event, envelope: bytes) -> None:
                found.append((event, envelope))
                if mirror is not None:
                    mirror(event, envelope)

            super().__init__(mirror=both, **options)

    with (
        patch.object(tests.support.planner.memory, "MemoryEventStore", Recording),
        patch.object(streams.dev.simulator.world, "MemoryEventStore", Recording),
    ):
        RECORDED.set(found)
        yield found


def _history(found: list[tuple[Event, bytes]]) -> Iterator[dict[str, Any]]:
    replay, states = Replay(), dict[int, Leaves]()
    for event, envelope in found:
        before, after = states.get(event.root.id, {}), replay.after(event)
        states[event.root.id] = after
        yield {
            "envelope": codec().record(envelope),
            "assigned": {
                "seq": event.seq,
                "position": event.position,
                "stream_version": event.stream_version,
                "at": event.ingest_time.isoformat(),
                "chain": event.chain,
            },
            "set": {k: v for k, v in after.items() if k not in before or before[k] != v},
            "unset": sorted(before.keys() - after.keys()),
        }


def main() -> None:
    """Record what is missing."""
    runs: dict[str, Callable[[], object]] = {
        name: lambda run=run: asyncio.run(run()) for name, run in SCENARIOS.items()
    }
    runs |= {f"simulated_{seed}": _simulated(seed) for seed in SIMULATED}
    FOLDER.mkdir(exist_ok=True)
    for name, run in runs.items():
        path = FOLDER / f"{name}.json"
        if not path.exists():
            with recording() as found:
                run()
            lines = (orjson.dumps(one) for one in _history(found))
            path.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")


if __name__ == "__main__":
    main()
