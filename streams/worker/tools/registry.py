"""Tools of a worker by kind: built in, and from installed packages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

from streams.payload.port import PayloadStore
from streams.playbook.sinks.storages import missing
from streams.results.lookup import Results
from streams.worker.attempt.children import Children
from streams.worker.await_executions import EndedExecutions
from streams.worker.errors import BadConfig, UnknownTool
from streams.worker.port import Call, Config, Credentials, Outcome, Tool
from streams.worker.sinks.port import SinkEnvironment
from streams.worker.sinks.tool import SinkTool
from streams.worker.tools.container.login import KubernetesConfig
from streams.worker.tools.container.script import ScriptTool
from streams.worker.tools.container.tool import ContainerTool
from streams.worker.tools.kv.port import KvStore
from streams.worker.tools.kv.tool import NatsTool
from streams.worker.tools.limited import LimitedTool
from streams.worker.tools.noop import NoopTool
from streams.worker.tools.playbook import PlaybookTool
from streams.worker.tools.postgres.tool import PostgresTool
from streams.worker.tools.python.tool import PythonTool
from streams.worker.tools.script import Scripts
from streams.worker.tools.shell.tool import ShellTool

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
    ended_executions: EndedExecutions
    """Waits for them."""
    results: Results | None = None
    """Lookup of results by name."""
    python_in_process: bool = False
    sink_folder: Path | None = None
    """Folder for files of sinks; None: files are not allowed."""
    scratch_folder: Path | None = None
    """Folder for files that pass between the steps of an execution on this host."""
    kv: KvStore | None = None
    """Small values that playbooks share."""
    shell_allowed: bool = False
    """Whether `kind: shell` may run commands with the rights of the worker's account."""
    kubernetes: KubernetesConfig = field(default_factory=KubernetesConfig)
    """Cluster of container tasks that name none."""


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
    from streams.worker.tools.artifact import ArtifactTool
    from streams.worker.tools.download import Downloads

    downloads = Downloads(around.credentials)
    return ArtifactTool(
        around.payloads, around.results, downloads=downloads, folder=around.sink_folder
    )


def _http(around: ToolEnvironment) -> Tool:
    from streams.worker.tools.http.tool import HttpTool

    return HttpTool(around.credentials)


def _kafka(around: ToolEnvironment) -> Tool:
    from streams.worker.tools.kafka import KafkaTool

    return KafkaTool(around.bootstrap)


def _duckdb(around: ToolEnvironment) -> Tool:
    from streams.worker.tools.duckdb import DuckdbTool

    folder = None if around.scratch_folder is None else around.scratch_folder / "duckdb"
    return DuckdbTool(around.credentials, folder=folder)


def _snowflake(around: ToolEnvironment) -> Tool:
    if (why := missing("snowflake", "snowflake")) is not None:
        raise BadConfig(why)
    from streams.worker.tools.snowflake import SnowflakeTool

    return SnowflakeTool(around.credentials)


def _sink(around: ToolEnvironment) -> Tool:
    return SinkTool(
        SinkEnvironment(
            credentials=around.credentials,
            deployment=around.deployment,
            folder=around.sink_folder,
        )
    )


def _container(around: ToolEnvironment) -> ContainerTool:
    return ContainerTool(around.credentials, around.kubernetes, deployment=around.deployment)


def _subscription(around: ToolEnvironment) -> Tool:
    from streams.worker.tools.subscription.tool import SubscriptionTool

    return SubscriptionTool(around.credentials, around.bootstrap)


def _transfer(around: ToolEnvironment) -> Tool:
    from streams.worker.tools.transfer import TransferTool, TransferTools

    return TransferTool(
        TransferTools(
            http=LazyTool(lambda: _http(around)),
            postgres=PostgresTool(around.credentials, deployment=around.deployment),
            snowflake=lambda: _snowflake(around),
            sink=_sink(around),
        )
    )


_OURS: Mapping[str, Factory] = {
    "noop": lambda _: NoopTool(),
    "http": lambda around: LazyTool(lambda: _http(around)),
    "postgres": lambda around: PostgresTool(
        around.credentials, deployment=around.deployment, scripts=Scripts(around.credentials)
    ),
    "python": lambda around: PythonTool(
        in_process=around.python_in_process, scripts=Scripts(around.credentials)
    ),
    "duckdb": lambda around: LazyTool(lambda: _duckdb(around)),
    "shell": lambda around: ShellTool(is_allowed=around.shell_allowed),
    "kafka": lambda around: LazyTool(lambda: _kafka(around)),
    "playbook": lambda around: PlaybookTool(
        around.children, around.ended_executions, around.payloads
    ),
    "artifact": lambda around: LimitedTool("artifact", LazyTool(lambda: _artifact(around))),
    "result": lambda around: LimitedTool("artifact", LazyTool(lambda: _artifact(around))),
    "sink": _sink,
    "snowflake": lambda around: LazyTool(lambda: _snowflake(around)),
    "transfer": lambda around: LazyTool(lambda: _transfer(around)),
    "nats": lambda around: LimitedTool("nats", NatsTool(around.kv, around.credentials)),
    "container": _container,
    "script": lambda around: ScriptTool(_container(around), Scripts(around.credentials)),
    "subscription": lambda around: LimitedTool(
        "subscription", LazyTool(lambda: _subscription(around))
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
