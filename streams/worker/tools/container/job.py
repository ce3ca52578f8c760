"""Kubernetes Job of a container task: its name, labels and manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config
from streams.worker.tools.task_config import mapping, seconds, text, whole

CALL_LABEL = "noetl.io/call"
TIMEOUT_S = 3600.0
TTL_S = 3600
_VOLUMES = ("empty_dir", "persistent_volume_claim", "config_map", "secret")
_POLICIES = ("Never", "OnFailure")
_PULLS = ("Always", "IfNotPresent", "Never")
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ContainerJob:
    """A Job to create, or to adopt if it exists."""

    namespace: str
    name: str
    call_id: str
    timeout_s: int
    manifest: Manifest


def container_job(config: Config, call: Call, *, deployment: str, namespace: str) -> ContainerJob:
    """Return the Job of a task, whose name is the same in every attempt of its call.

    Raises:
        BadConfig: the configuration is not valid.
    """
    named = "/".join(
        (deployment, str(call.execution_id), str(call.entity_id), call.task, call.partition)
    )
    call_id = sha256(f"{named}.{call.tries}".encode()).hexdigest()[:32]
    step = re.sub(r"[^a-z0-9]+", "-", call.step.lower()).strip("-")[:20].strip("-")
    name = f"noetl-{step}-{call_id}" if step else f"noetl-{call_id}"
    where = text(config, "namespace") if config.get("namespace") is not None else namespace
    given = config.get("timeout_seconds", config.get("timeout"))
    limit = seconds({"timeout": given} if given is not None else {}, call, TIMEOUT_S)
    timeout_s = max(1, round(limit or TIMEOUT_S))
    labels = {
        "app.kubernetes.io/managed-by": "noetl-streams",
        "noetl.io/execution-id": str(call.execution_id),
        CALL_LABEL: call_id,
    }
    spec: Manifest = {
        "activeDeadlineSeconds": timeout_s,
        "backoffLimit": _count(config, 0, "backoff_limit", "backoffLimit"),
        "ttlSecondsAfterFinished": _count(
            config, TTL_S, "ttl_seconds_after_finished", "ttlSecondsAfterFinished"
        ),
        "template": {"metadata": {"labels": labels}, "spec": _pod(config)},
    }
    metadata = {"name": name, "namespace": where, "labels": labels}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    return ContainerJob(where, name, call_id, timeout_s, manifest)


def _pod(config: Config) -> Manifest:
    container: Manifest = {"name": "main", "image": text(config, "image")}
    for key in ("command", "args"):
        if (given := config.get(key)) not in (None, []):
            container[key] = _texts(given, key)
    if env := _environment(config.get("env")):
        container["env"] = env
    if resources := _resources(mapping(config, "resources")):
        container["resources"] = resources
    if mounts := _camel(_mappings(config, "volume_mounts")):
        container["volumeMounts"] = mounts
    if (pull := config.get("image_pull_policy")) is not None:
        container["imagePullPolicy"] = _one_of(pull, _PULLS, "image_pull_policy")
    policy = _one_of(config.get("restart_policy") or "Never", _POLICIES, "restart_policy")
    pod: Manifest = {"containers": [container], "restartPolicy": policy}
    if config.get("service_account") is not None:
        pod["serviceAccountName"] = text(config, "service_account")
    if selector := mapping(config, "node_selector"):
        pod["nodeSelector"] = {name: str(value) for name, value in selector.items()}
    if tolerations := _camel(_mappings(config, "tolerations")):
        pod["tolerations"] = tolerations
    if volumes := _mappings(config, "volumes"):
        pod["volumes"] = [_volume(one) for one in volumes]
    return pod


def _environment(given: Json) -> list[Manifest]:
    """Return variables from a mapping, or from a list of {name, value or value_from}."""
    if isinstance(given, Mapping):
        given = [{"name": name, "value": value} for name, value in given.items()]
    found = []
    for one in _mappings({"env": given}, "env"):
        name, secret = text(one, "name"), mapping(one, "value_from")
        if secret:
            reference = {"name": text(secret, "secret_name"), "key": text(secret, "secret_key")}
            found.append({"name": name, "valueFrom": {"secretKeyRef": reference}})
        else:
            found.append({"name": name, "value": _scalar(one.get("value"), f"env {name}")})
    return found


def _resources(given: Config) -> Manifest:
    return {
        key: {name: _scalar(value, name) for name, value in mapping(given, key).items()}
        for key in ("requests", "limits")
        if mapping(given, key)
    }


def _volume(given: Config) -> Manifest:
    unknown = [key for key in given if key not in ("name", *_VOLUMES)]
    if unknown or len(given) != 2:
        raise BadConfig(f"a volume has `name` and one of {', '.join(_VOLUMES)}")
    source = next(key for key in given if key != "name")
    camel: Manifest = _camel({source: given[source] or {}})
    return {"name": text(given, "name"), **camel}


def _camel(given: Any) -> Any:
    """Return a value with every key in the API's spelling: `claim_name` is `claimName`."""
    if isinstance(given, Mapping):
        return {
            re.sub(r"_([a-z])", lambda found: found[1].upper(), str(key)): _camel(value)
            for key, value in given.items()
        }
    return [_camel(one) for one in given] if isinstance(given, list) else given


def _mappings(config: Config, name: str) -> list[Config]:
    given = config.get(name)
    if given is None:
        return []
    if not isinstance(given, list):
        raise BadConfig(f"{name!r} must be a list of mappings")
    found: list[Config] = [one for one in given if isinstance(one, Mapping)]
    if len(found) != len(given):
        raise BadConfig(f"{name!r} must be a list of mappings")
    return found


def _texts(given: Json, name: str) -> list[str]:
    if not isinstance(given, list):
        raise BadConfig(f"{name!r} must be a list of texts")
    return [_scalar(one, name) for one in given]


def _scalar(given: Json, name: str) -> str:
    if given is None or isinstance(given, (Mapping, list)):
        raise BadConfig(f"{name!r} must be a text or a number, not {given!r:.80}")
    return str(given).lower() if isinstance(given, bool) else str(given)


def _one_of(given: Json, known: Sequence[str], name: str) -> str:
    if given not in known:
        raise BadConfig(f"{name!r} is {given!r}, not one of {', '.join(known)}")
    return str(given)


def _count(config: Config, default: int, *names: str) -> int:
    for name in names:
        if (value := whole(config, name)) is not None:
            if value < 0:
                raise BadConfig(f"{name!r} must not be negative")
            return value
    return default
