"""Context of an attempt at a frame or command: step, document, scope, results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from streams.errors import Unavailable
from streams.events.model import Json
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.playbook.model import Playbook, Step
from streams.retry import retry
from streams.worker.attempt.deferred import Deferral
from streams.worker.attempt.keychain import Keychain
from streams.worker.attempt.lease import AttemptLease
from streams.worker.attempt.pipeline import Pipeline
from streams.worker.attempt.result_writer import ResultWriter
from streams.worker.attempt.secrets import name_credentials
from streams.worker.attempt.task_call import Caller
from streams.worker.errors import TaskUnavailable
from streams.worker.options import Options, WorkerPorts
from streams.worker.pace.lanes import RowLanes
from streams.worker.port import ReleasedSlot

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, while its lease lasts."""

    lease: AttemptLease
    ports: WorkerPorts
    options: Options
    step: Step
    document: Mapping[str, Json]
    scope: dict[str, object]
    released_slot: ReleasedSlot = nullcontext
    results: ResultWriter = field(init=False)

    def __post_init__(self) -> None:
        ports = self.ports
        writer = ResultWriter(
            self.item,
            ports.payloads,
            ports.copies,
            ports.log,
            ports.clock,
            self.retry,
            self.options.inline_bytes,
            self.options.large_store,
            cause_id=self.lease.claim_id,
        )
        object.__setattr__(self, "results", writer)

    @property
    def item(self) -> WorkItem:
        """The work item."""
        return self.lease.item

    async def retry(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `call`, retrying while a dependency is down and the lease lasts."""
        return await _while_leased(call, self.lease, self.ports)

    def pipeline(self, deferral: Deferral | None = None, lanes: RowLanes | None = None) -> Pipeline:
        """Return the step's pipeline for this attempt; `lanes` count the rows that run."""
        item = self.item
        caller = Caller(
            tenant_id=item.tenant_id,
            organization_id=item.organization_id,
            execution_id=item.execution_id,
            step=item.step,
            entity_id=item.entity_id,
            attempt=item.attempt,
            stage_id=item.stage_id,
            cause_id=self.lease.claim_id,
            catalog_id=item.catalog_id,
            released_slot=self.released_slot,
            lanes=RowLanes(1) if lanes is None else lanes,
            rates=self.ports.rates,
            holds=self.ports.holds,
        )
        return Pipeline(
            self.step.tasks,
            self.ports.tools,
            caller,
            clock=self.ports.clock,
            give_up_after_s=self.options.give_up_after_s,
            deferral=deferral,
            results=self.results,
        )


async def begin(
    lease: AttemptLease,
    ports: WorkerPorts,
    options: Options,
    released_slot: ReleasedSlot = nullcontext,
) -> Attempt:
    """Load the attempt's playbook, document and scope.

    Raises:
        Refused: the playbook, the step or the document is not valid.
        Unavailable: the catalog or the payload store stayed down until the lease ended.
    """
    item, documents = lease.item, ports.documents

    async def read() -> Attempt:
        playbook = await ports.playbooks.get(item.catalog_id, item.catalog_version)
        step = _step(playbook, item)
        name_credentials(playbook.credentials)
        document = await documents.document(item)
        scope = await documents.scope(item, document, step.key_paths, step.spelling)
        if playbook.keychain and "keychain" in step.reads:
            keychain = Keychain(ports.credentials, ports.tools)
            scope["keychain"] = await keychain.values(playbook.keychain, scope, item)
        return Attempt(lease, ports, options, step, document, scope, released_slot)

    return await _while_leased(read, lease, ports)


async def _while_leased(
    call: Callable[[], Awaitable[T]], lease: AttemptLease, ports: WorkerPorts
) -> T:
    """Return the result of `call`, retrying while a dependency is down.

    The system's own dependencies are retried as long as heartbeats renew the lease, so that an
    outage costs no attempt; those of a task until the lease as it is now expires.
    """
    task_until = lease.last_moment

    def give_up(error: Unavailable, pause_s: float) -> bool:
        until = task_until if isinstance(error, TaskUnavailable) else lease.last_moment
        return ports.clock.monotonic() + pause_s >= until

    return await retry(call, give_up=give_up, holds=ports.holds)


def _step(playbook: Playbook, item: WorkItem) -> Step:
    step = playbook.steps.get(item.step)
    if step is None:
        raise BadWorkItem(f"{playbook.path} has no step {item.step!r}")
    return step
