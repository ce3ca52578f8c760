"""The state of a connector and its tasks, as Connect reports it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectorTask:
    """One task of a connector; `trace` is empty unless it failed."""

    task_id: int
    state: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """The state of a connector and its tasks."""

    name: str
    state: str
    tasks: tuple[ConnectorTask, ...]
    trace: str = ""

    def __str__(self) -> str:
        tasks = ", ".join(f"task {task.task_id} {task.state}" for task in self.tasks)
        text = f"{self.name}: {self.state}, {tasks or 'no tasks'}"
        return f"{text}; {self.failure}" if self.failure else text

    @property
    def running(self) -> bool:
        """Whether the connector and all its tasks, at least one, are running."""
        states = {task.state for task in self.tasks}
        return self.state == "RUNNING" and states == {"RUNNING"}

    @property
    def paused(self) -> bool:
        """Whether the connector and all its tasks are paused."""
        return {self.state, *(task.state for task in self.tasks)} == {"PAUSED"}

    @property
    def at_rest(self) -> bool:
        """Whether it is paused or stopped."""
        return self.state in {"PAUSED", "STOPPED"}

    @property
    def failure(self) -> str | None:
        """The cause of the first failure, in one line; None when nothing failed."""
        if self.state == "FAILED":
            return summarise(self.trace)
        failed = next((task for task in self.tasks if task.state == "FAILED"), None)
        return f"task {failed.task_id}: {summarise(failed.trace)}" if failed else None


def summarise(trace: str) -> str:
    """Reduce a Java stack trace to its first and root exception."""
    lines = [line.strip() for line in trace.splitlines()]
    heads = [
        line.removeprefix("Caused by: ")
        for number, line in enumerate(lines)
        if line.startswith("Caused by: ") or (number == 0 and line)
    ]
    if not heads:
        return "no trace"
    first, last = (_without_package(head).rstrip(".") for head in (heads[0], heads[-1]))
    return first if first == last else f"{first} <- {last}"


def _without_package(head: str) -> str:
    """Shorten `org.apache.X: text` to `X: text`."""
    kind, colon, text = head.partition(": ")
    return kind.rsplit(".", 1)[-1] + colon + text if " " not in kind else head
