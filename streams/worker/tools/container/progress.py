"""End of a Kubernetes Job: waits for it, and describes how it ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kubernetes.aio import client

from streams.events.model import Json
from streams.worker.port import Outcome
from streams.worker.tools.container.cluster import Cluster, ClusterRefused
from streams.worker.tools.container.job import ContainerJob

FIRST_WAIT_S, LAST_WAIT_S = 0.5, 5.0
_OOM = "OOMKilled"
_DEADLINE = "DeadlineExceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """How a Job ended."""

    is_complete: bool
    reason: str = ""
    message: str = ""
    waiting: str = ""
    """Why its container had not started when it was last seen."""
    pod: str | None = None
    exit_code: int | None = None
    output: str | None = None
    succeeded: int = 0
    failed: int = 0
    seconds: float | None = None


async def job_end(cluster: Cluster, job: ContainerJob) -> JobEnd:
    """Wait until the Job has ended, and return how.

    Raises:
        ClusterRefused: the Job was deleted.
    """
    wait_s, waiting = FIRST_WAIT_S, ""
    while True:
        if (found := await cluster.read(job)) is None:
            why = "was deleted before it ended; a rule that retries the task starts another"
            raise ClusterRefused(f"Job {job.namespace}/{job.name} {why}")
        for condition in (found.status and found.status.conditions) or []:
            if condition.status == "True" and condition.type in ("Complete", "Failed"):
                return await _described(cluster, job, found, condition, waiting)
        waiting = _waiting(await cluster.newest_pod(job)) or waiting
        await asyncio.sleep(wait_s)
        wait_s = min(LAST_WAIT_S, wait_s * 1.5)


def outcome_of(job: ContainerJob, end: JobEnd, *, is_adopted: bool) -> Outcome:
    """Return the outcome of a task whose Job has ended."""
    data: dict[str, Json] = {
        "status": "completed" if end.is_complete else "failed",
        "job_name": job.name,
        "namespace": job.namespace,
        "pod_name": end.pod,
        "exit_code": end.exit_code,
        "reason": end.reason or None,
        "output": end.output,
        "succeeded": end.succeeded,
        "failed": end.failed,
        "execution_time": end.seconds,
    }
    meta: dict[str, Json] = {"job": "adopted" if is_adopted else "created"}
    if end.is_complete:
        return Outcome(status="success", data=data, meta=meta)
    kind, message = _problem(job, end)
    error: dict[str, Json] = {"kind": kind, "message": message, "code": end.exit_code}
    return Outcome(status="error", data=data, meta=meta, error=error)


def _problem(job: ContainerJob, end: JobEnd) -> tuple[str, str]:
    name = f"Job {job.namespace}/{job.name}"
    if end.reason == _OOM:
        return "container.oom", f"{name}: killed because it used more memory than its limit"
    if end.reason == _DEADLINE:
        why = f"; its container waited: {end.waiting}" if end.waiting else ""
        return "container.timeout", f"{name} did not end within {job.timeout_s} s{why}"
    if end.exit_code:
        last = (end.output or "").strip().rpartition("\n")[2][:200]
        return "container.exit", f"{name} ended with exit code {end.exit_code}: {last}"
    return "container.failed", f"{name} failed: {end.reason} {end.message}".strip()


async def _described(
    cluster: Cluster,
    job: ContainerJob,
    found: client.V1Job,
    condition: client.V1JobCondition,
    waiting: str,
) -> JobEnd:
    pod, status = await cluster.newest_pod(job), found.status
    name = pod.metadata.name if pod and pod.metadata else None
    stopped, is_complete = _terminated(pod), condition.type == "Complete"
    reason = condition.reason or ""
    if not is_complete and reason != _DEADLINE and stopped is not None:
        reason = stopped.reason or reason
    begun = status.start_time if status else None
    ended = (status.completion_time if status else None) or condition.last_transition_time
    return JobEnd(
        is_complete=is_complete,
        reason="" if is_complete else reason,
        message=condition.message or "",
        waiting=waiting,
        pod=name,
        exit_code=stopped.exit_code if stopped else None,
        output=None if name is None else await cluster.log(job, name),
        succeeded=(status.succeeded if status else None) or 0,
        failed=(status.failed if status else None) or 0,
        seconds=(ended - begun).total_seconds() if begun and ended else None,
    )


def _statuses(pod: client.V1Pod | None) -> list[client.V1ContainerStatus]:
    return (pod.status.container_statuses if pod and pod.status else None) or []


def _terminated(pod: client.V1Pod | None) -> client.V1ContainerStateTerminated | None:
    for status in _statuses(pod):
        for state in (status.state, status.last_state):
            if state is not None and state.terminated is not None:
                return state.terminated
    return None


def _waiting(pod: client.V1Pod | None) -> str:
    for status in _statuses(pod):
        if status.state is not None and status.state.waiting is not None:
            state = status.state.waiting
            return f"{state.reason or ''} {state.message or ''}".strip()[:300]
    for condition in (pod.status.conditions if pod and pod.status else None) or []:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.reason or ''} {condition.message or ''}".strip()[:300]
    return ""
