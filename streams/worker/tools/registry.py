"""Tools of a worker by kind: built in, and from installed packages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from streams.payload.port import PayloadStore
from streams.results.lookup import Results
from streams.worker.attempt.children import Children
from streams.worker.await_executions import Endings
from streams.worker.errors import BadConfig, UnknownTool
from streams.worker.port import Call, Config, Credentials, Outcome, Tool
from streams.worker.sinks.port import SinkEnvironment
from streams.worker.sinks.tool import SinkTool
from streams.worker.tools.artifact import ArtifactTool
from streams.worker.tools.download import Downloads
from streams.worker.tools.kafka import KafkaTool
from streams.worker.tools.noop import NoopTool
from streams.worker.tools.playbook import PlaybookTool
from streams.worker.tools.postgres.tool import PostgresTool
from streams.worker.tools.python.tool import PythonTool

GROUP = "streams.tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnvironment:
    """Deployment settings and services that tools use."""

    credentials: Credentials
    payloads: PayloadStore
    deployment: str
    """Part of every fence's name, so that two deployments can share a database."""
    bootstrap: str
    """Kafka's address."""
    children: Children
    """Starts the executions that tasks call."""
    endings: Endings
    """Waits for them."""
    results: Results | None = None
    """Lookup of results by name."""
    python_in_process: bool = False
    sink_folder: Path | None = None
    """Folder for files of sinks; None: files are not allowed."""


class LazyTool:
    """A tool that is created, and its driver imported, by the first call."""

    def __init__(self, make: Callable[[], Tool]) -> None:
        self._make = make
        self._tool: Tool | None = None

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the task once."""
        if self._tool is None:
            self._tool = self._make()
        return await self._tool.run(config, call)

    async def close(self) -> None:
        """Close the tool, if it was used."""
        if self._tool is not None:
            await self._tool.close()


Factory = Callable[[ToolEnvironment], Tool]
"""Object of an entry point in `streams.tools`; the entry's name is the tool's kind."""


def _artifact(around: ToolEnvironment) -> Tool:
    downloads = Downloads(around.credentials)
    return ArtifactTool(
        around.payloads, around.results, downloads=downloads, folder=around.sink_folder
    )


def _http(around: ToolEnvironment) -> Tool:
    from streams.worker.tools.http.tool import HttpTool

    return HttpTool(around.credentials)


def _duckdb() -> Tool:
    from streams.worker.tools.duckdb import DuckdbTool

    return DuckdbTool()


_OURS: Mapping[str, Factory] = {
    "noop": lambda _: NoopTool(),
    "http": lambda around: LazyTool(lambda: _http(around)),
    "postgres": lambda around: PostgresTool(around.credentials, deployment=around.deployment),
    "python": lambda around: PythonTool(in_process=around.python_in_process),
    "duckdb": lambda _: LazyTool(_duckdb),
    "kafka": lambda around: KafkaTool(around.bootstrap),
    "playbook": lambda around: PlaybookTool(around.children, around.endings, around.payloads),
    "artifact": _artifact,
    "result": _artifact,
    "sink": lambda around: SinkTool(
        SinkEnvironment(
            credentials=around.credentials,
            deployment=around.deployment,
            folder=around.sink_folder,
        )
    ),
}


def factories() -> Mapping[str, Factory]:
    """Return the factory of every kind of tool.

    Raises:
        BadConfig: a package adds a tool of a kind that is taken.
    """
    found = dict(_OURS)
    for entry in entry_points(group=GROUP):
        if entry.name in found:
            raise BadConfig(
                f"the entry point {entry.value!r} in the group {GROUP!r} wants the kind "
                f"{entry.name!r}, which is taken; uninstall the package or rename its tool"
            )
        found[entry.name] = entry.load()
    return found


@asynccontextmanager
async def open_tools(around: ToolEnvironment) -> AsyncIterator[Mapping[str, Tool]]:
    """Yield every tool by kind; they connect on first use, and are closed at the end."""
    tools = {kind: make(around) for kind, make in factories().items()}
    try:
        yield tools
    finally:
        for tool in tools.values():
            await tool.close()


def tool_of(tools: Mapping[str, Tool], kind: str) -> Tool:
    """Return the tool of a kind.

    Raises:
        UnknownTool: it does not exist.
    """
    if (tool := tools.get(kind)) is None:
        raise UnknownTool(kind, list(tools))
    return tool
