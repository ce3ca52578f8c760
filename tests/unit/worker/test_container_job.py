"""Kubernetes Jobs of container tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.worker.errors import BadConfig
from streams.worker.port import Call
from streams.worker.tools.container.job import ContainerJob, container_job
from tests.support.worker.tool_calls import CALL

DEPLOYMENT = "test"


def job(call: Call = CALL, **config: Any) -> ContainerJob:
    task = {"image": "alpine:3", **config}
    return container_job(task, call, deployment=DEPLOYMENT, namespace="noetl")


def test_the_name_is_that_of_the_call_and_not_of_the_attempt() -> None:
    assert job().name == job(replace(CALL, attempt=2)).name
    others = [replace(CALL, entity_id=3), replace(CALL, tries=2), replace(CALL, partition="1.1")]
    assert len({job(call).name for call in (CALL, *others)}) == 4


@pytest.mark.parametrize("step", ["s", "load/Über_1", "-", "x" * 100, "a" * 19 + "-b"])
def test_a_name_is_valid_for_kubernetes(step: str) -> None:
    name = job(replace(CALL, step=step)).name
    assert len(name) <= 63
    assert all(part.isascii() and part.isalnum() for part in name.split("-")), name
    assert name == name.lower()


def test_all_of_a_task_is_in_the_manifest() -> None:
    made = job(
        command=["sh"],
        args=["-c", 5],
        env=[
            {"name": "PORT", "value": 5432},
            {"name": "KEY", "value_from": {"secret_name": "s", "secret_key": "k"}},
        ],
        resources={"requests": {"cpu": 1}, "limits": {"memory": "32Mi"}},
        namespace="other",
        service_account="worker",
        timeout_seconds=120,
        backoff_limit=2,
        restart_policy="OnFailure",
        node_selector={"gpu": True},
        tolerations=[{"key": "gpu", "toleration_seconds": 5}],
        volumes=[{"name": "data", "persistent_volume_claim": {"claim_name": "c"}}],
        volume_mounts=[{"name": "data", "mount_path": "/data"}],
    )
    spec = made.manifest["spec"]
    assert (spec["activeDeadlineSeconds"], spec["backoffLimit"]) == (120, 2)
    assert (spec["ttlSecondsAfterFinished"], made.namespace) == (3600, "other")
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["serviceAccountName"]) == ("OnFailure", "worker")
    assert pod["tolerations"] == [{"key": "gpu", "tolerationSeconds": 5}]
    assert pod["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    assert pod["containers"] == [
        {
            "name": "main",
            "image": "alpine:3",
            "command": ["sh"],
            "args": ["-c", "5"],
            "env": [
                {"name": "PORT", "value": "5432"},
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
            "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "32Mi"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
    ]


def test_the_deadline_is_the_shorter_of_the_task_and_its_caller() -> None:
    assert job(replace(CALL, timeout_s=5), timeout_seconds=60).timeout_s == 5
    assert job().timeout_s == 3600


@pytest.mark.parametrize(
    "config",
    [
        {"image": ""},
        {"command": "sh -c x"},
        {"args": [{}]},
        {"env": "A=1"},
        {"env": {"A": []}},
        {"restart_policy": "Always"},
        {"backoff_limit": -1},
        {"timeout_seconds": 0},
        {"volumes": [{"name": "root", "host_path": {"path": "/"}}]},
        {"resources": []},
    ],
)
def test_a_task_that_is_not_valid_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(BadConfig):
        job(**config)
