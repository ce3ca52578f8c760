"""Container tasks with the official client, on a stand-in for the cluster."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from streams.worker.errors import TargetUnavailable
from streams.worker.port import Outcome
from streams.worker.tools.container.login import KubernetesConfig
from streams.worker.tools.container.script import ScriptTool
from streams.worker.tools.container.tool import ContainerTool
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.script import Scripts
from tests.support.servers.kubernetes import KubernetesServer, kubernetes_server
from tests.support.worker.tool_calls import CALL

TASK: dict[str, Any] = {"image": "alpine:3", "command": ["/bin/sh", "-c"], "auth": "k8s"}


@pytest.fixture
async def cluster() -> AsyncIterator[KubernetesServer]:
    async with kubernetes_server() as server:
        yield server


@pytest.fixture
async def tool(cluster: KubernetesServer) -> AsyncIterator[ContainerTool]:
    made = ContainerTool(logins(cluster), KubernetesConfig(), deployment="test")
    yield made
    await made.close()


def logins(cluster: KubernetesServer) -> ConfiguredCredentials:
    runs = {"users": [{"name": "u", "user": {"exec": {"command": "id"}}}]}
    return ConfiguredCredentials(
        {
            "k8s": cluster.login,
            "wrong": {**cluster.login, "token": "wrong"},
            "away": {**cluster.login, "server": "http://127.0.0.1:9"},
            "empty": {"server": "http://127.0.0.1:9"},
            "runs": {"kubeconfig": yaml.safe_dump(runs)},
            "text": {"kubeconfig": "[s3cret"},
        },
        {},
    )


def error(outcome: Outcome) -> tuple[Any, str]:
    assert outcome.error is not None, outcome.data
    return outcome.error["kind"], str(outcome.error["message"])


async def test_a_job_is_created_and_its_output_returned(
    cluster: KubernetesServer, tool: ContainerTool
) -> None:
    cluster.end, cluster.log = {"code": 0, "reason": "Completed"}, '{"a": 1}\n'
    outcome = await tool.run({**TASK, "args": ["echo"], "env": {"N": 5}}, CALL)
    assert (outcome.status, outcome.meta) == ("success", {"job": "created"})
    assert isinstance(outcome.data, dict)
    (name,) = cluster.jobs
    assert outcome.data == {
        "status": "completed",
        "job_name": name,
        "namespace": "noetl",
        "pod_name": f"{name}-pod",
        "exit_code": 0,
        "reason": None,
        "output": '{"a": 1}\n',
        "succeeded": 1,
        "failed": 0,
        "execution_time": 7.0,
    }
    (container,) = cluster.jobs[name]["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "N", "value": "5"}]


async def test_a_later_attempt_adopts_the_job_of_an_earlier_one(
    cluster: KubernetesServer, tool: ContainerTool
) -> None:
    first = asyncio.create_task(tool.run(TASK, CALL))
    while not cluster.jobs:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    first.cancel()
    (name,) = cluster.jobs
    second = asyncio.create_task(tool.run(TASK, replace(CALL, attempt=2)))
    await asyncio.sleep(0.3)
    cluster.finish(name, 0, "Completed")
    outcome = await second
    assert (outcome.status, outcome.meta) == ("success", {"job": "adopted"})
    assert list(cluster.jobs) == [name]
    cluster.end = {"code": 0, "reason": "Completed"}
    await tool.run(TASK, replace(CALL, tries=2))
    assert len(cluster.jobs) == 2


@pytest.mark.parametrize(
    ("end", "kind", "message"),
    [
        ({"code": 137, "reason": "OOMKilled"}, "container.oom", "more memory than its limit"),
        ({"code": 3, "reason": "Error"}, "container.exit", "exit code 3: no such table"),
        ({"code": 1, "reason": "DeadlineExceeded"}, "container.timeout", "within 60 s"),
    ],
)
async def test_a_job_that_fails_is_an_error_with_its_reason(
    cluster: KubernetesServer, tool: ContainerTool, end: dict[str, Any], kind: str, message: str
) -> None:
    cluster.end, cluster.log = end, "begin\nno such table\n"
    outcome = await tool.run({**TASK, "timeout_seconds": 60}, CALL)
    found, said = error(outcome)
    assert (found, message in said) == (kind, True), said
    assert isinstance(outcome.data, dict)
    assert outcome.data["status"] == "failed"


async def test_a_deadline_names_why_the_container_did_not_start(
    cluster: KubernetesServer, tool: ContainerTool
) -> None:
    running = asyncio.create_task(tool.run(TASK, CALL))
    while not cluster.jobs:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    (name,) = cluster.jobs
    cluster.set_state(name, {"waiting": {"reason": "ImagePullBackOff", "message": "no such"}})
    await asyncio.sleep(1)
    cluster.finish(name, 1, "DeadlineExceeded")
    assert "ImagePullBackOff no such" in error(await running)[1]


@pytest.mark.parametrize(
    ("config", "kind", "message"),
    [
        ({"auth": "wrong"}, "container.refused", "answered 401: Unauthorized"),
        ({"namespace": "other"}, "container.refused", 'namespaces "other" not found'),
        ({"auth": None}, "container.refused", "connected to no cluster"),
        ({"auth": "empty"}, "container.config", "`server` and `token`"),
        ({"auth": "runs"}, "container.config", "'exec', which would run a program"),
        ({"auth": "text"}, "container.config", "is not YAML"),
        ({"image": None}, "container.config", "'image' is missing"),
    ],
)
async def test_what_cannot_run_is_refused(
    tool: ContainerTool, config: dict[str, Any], kind: str, message: str
) -> None:
    found, said = error(await tool.run({**TASK, **config}, CALL))
    assert (found, message in said) == (kind, True), said
    assert "s3cret" not in said


async def test_a_cluster_that_is_away_is_unavailable(
    cluster: KubernetesServer, tool: ContainerTool
) -> None:
    with pytest.raises(TargetUnavailable):
        await tool.run({**TASK, "auth": "away"}, CALL)
    cluster.status = 503
    with pytest.raises(TargetUnavailable, match="503"):
        await tool.run(TASK, CALL)


async def test_a_job_that_was_deleted_is_refused(
    cluster: KubernetesServer, tool: ContainerTool
) -> None:
    running = asyncio.create_task(tool.run(TASK, CALL))
    while not cluster.jobs:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    cluster.jobs.clear()
    assert "was deleted before it ended" in error(await running)[1]


async def test_the_cluster_of_the_settings_is_used(
    cluster: KubernetesServer, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    place = {"cluster": {"server": cluster.login["server"]}, "name": "c"}
    user = {"name": "u", "user": {"token": cluster.login["token"]}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    made = {"clusters": [place], "users": [user], "contexts": [context], "current-context": "c"}
    file.write_text(yaml.safe_dump(made))
    tool = ContainerTool(
        ConfiguredCredentials({}, {}), KubernetesConfig(kubeconfig=file), deployment="test"
    )
    cluster.end = {"code": 0, "reason": "Completed"}
    assert (await tool.run({"image": "a"}, CALL)).status == "success"
    file.write_text("clusters: []")
    await tool.close()
    other = ContainerTool(
        ConfiguredCredentials({}, {}), KubernetesConfig(kubeconfig=file), deployment="test"
    )
    assert error(await other.run({"image": "a"}, CALL))[0] == "container.config"


async def test_a_script_is_run_by_the_job(cluster: KubernetesServer, tool: ContainerTool) -> None:
    cluster.end = {"code": 0, "reason": "Completed"}
    code = "import json, sys\nprint(json.loads(sys.argv[1])['n'] + 1, __name__)\n"
    script = ScriptTool(tool, Scripts(logins(cluster)))
    task = {
        "script": {"source": {"type": "inline", "code": code}},
        "input": {"n": 1},
        "auth": "k8s",
        "job": {"env": {"A": 1}, "backoffLimit": 3, "ttlSecondsAfterFinished": 300},
    }
    assert (await script.run(task, CALL)).status == "success"
    (spec,) = (job["spec"] for job in cluster.jobs.values())
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (3, 300)
    (container,) = spec["template"]["spec"]["containers"]
    env = {one["name"]: one["value"] for one in container["env"]}
    command = [
        part.replace("exec python", f"exec {sys.executable}") for part in container["command"]
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)  # noqa: ASYNC221
    assert (done.stdout, env["A"]) == ("2 __main__\n", "1")
    large = {**task, "script": {"source": {"type": "inline", "code": "#" * 200_000}}}
    assert "more than" in error(await script.run(large, CALL))[1]
    await script.close()
