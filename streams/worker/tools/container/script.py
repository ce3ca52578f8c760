"""The tool of `kind: script`: runs a Python script as a Kubernetes Job."""

from __future__ import annotations

from shlex import quote

import orjson

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome
from streams.worker.sinks.port import SinkRefused
from streams.worker.tools.container.tool import ContainerTool
from streams.worker.tools.download import SourceUnavailable
from streams.worker.tools.script import Scripts
from streams.worker.tools.task_config import failed, mapping

SCRIPT_BYTES = 100_000
"""The largest script: it is passed as a variable, and Linux limits one to 128 KiB."""
IMAGE = "python:3.11-slim"
_RUN = (
    "import os, sys; sys.argv = ['script.py', os.environ['NOETL_INPUT']]; "
    "exec(compile(os.environ['NOETL_SCRIPT'], 'script.py', 'exec'), {'__name__': '__main__'})"
)


class ScriptTool:
    """Passes the text of `script` to Python in the image of `job`, with `input` as JSON."""

    def __init__(self, container: ContainerTool, scripts: Scripts) -> None:
        self._container, self._scripts = container, scripts

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the script once.

        Raises:
            TargetUnavailable: the cluster or the script's object store cannot be reached.
        """
        try:
            code = await self._scripts.read(config, call)
            if len(code.encode()) > SCRIPT_BYTES:
                raise BadConfig(f"the script has more than {SCRIPT_BYTES} bytes")
            task = _container_task(config, code)
        except (BadConfig, SourceUnavailable, SinkRefused) as error:
            return failed("container.config", f"script: {error}")
        return await self._container.run(task, call)

    async def close(self) -> None:
        """Close the connections."""
        await self._scripts.close()
        await self._container.close()


def _container_task(config: Config, code: str) -> dict[str, Json]:
    job = mapping(config, "job")
    given = job.get("install_dependencies") or []
    if not isinstance(given, list):
        raise BadConfig("'install_dependencies' must be a list of packages")
    packages = " ".join(quote(str(one)) for one in given)
    install = f"pip install --quiet {packages} && " if packages else ""
    data = config.get("input") if config.get("input") is not None else config.get("args")
    own: list[Json] = [
        {"name": "NOETL_SCRIPT", "value": code},
        {"name": "NOETL_INPUT", "value": orjson.dumps(data or {}).decode()},
    ]
    env = job.get("env") or []
    listed = [{"name": key, "value": env[key]} for key in env] if isinstance(env, dict) else env
    if not isinstance(listed, list):
        raise BadConfig("'env' must be a mapping or a list")
    task: dict[str, Json] = {"image": IMAGE, **job, "env": [*listed, *own]}
    task.pop("install_dependencies", None)
    task["command"] = ["/bin/sh", "-c", f"{install}exec python -c {quote(_RUN)}"]
    if (auth := config.get("auth")) is not None:
        task["auth"] = auth
    return task
