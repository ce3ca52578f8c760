"""Cluster of a container task: from its credential, the settings, or the worker's own pod."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from streams.worker.errors import BadConfig

_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_RUNS_OR_READS = frozenset(
    {
        *("exec", "auth-provider", "tokenFile"),
        *("certificate-authority", "client-certificate", "client-key"),
    }
)
NO_CLUSTER = (
    "a container task runs as a Kubernetes Job, and this worker is connected to no cluster; give "
    "the task `auth` with a credential that has `kubeconfig` or `server` and `token`, set "
    "tools.kubernetes.kubeconfig, or run the worker in the cluster; without one, use "
    "`kind: shell` or `kind: python`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesConfig:
    """Cluster of the deployment, from its settings."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = "noetl"


@dataclass(frozen=True, slots=True)
class ClusterLogin:
    """How to reach a cluster: a kubeconfig, or (None) the worker's own service account."""

    kubeconfig: Mapping[str, Any] | None = field(default=None, repr=False)
    path: Path | None = None
    context: str | None = None


def cluster_login(secret: Mapping[str, str], settings: KubernetesConfig) -> ClusterLogin | None:
    """Return the cluster of a task; None: there is none.

    Raises:
        BadConfig: the credential is not valid.
    """
    if secret:
        return ClusterLogin(_from_secret(secret), context=secret.get("context"))
    if settings.kubeconfig is not None:
        return ClusterLogin(path=settings.kubeconfig, context=settings.context)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and _TOKEN.exists():
        return ClusterLogin()
    return None


def _from_secret(secret: Mapping[str, str]) -> Mapping[str, Any]:
    if secret.get("kubeconfig"):
        return _checked(secret["kubeconfig"])
    server, token = secret.get("server") or secret.get("host"), secret.get("token")
    if not server or not token:
        raise BadConfig(
            "a cluster's credential has `kubeconfig`, or `server` and `token` (and `ca_data`, "
            "base64)"
        )
    cluster = {"server": server}
    if secret.get("ca_data"):
        cluster["certificate-authority-data"] = secret["ca_data"]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "noetl", "cluster": cluster}],
        "users": [{"name": "noetl", "user": {"token": token}}],
        "contexts": [{"name": "noetl", "context": {"cluster": "noetl", "user": "noetl"}}],
        "current-context": "noetl",
    }


def _checked(text: str) -> Mapping[str, Any]:
    """Return a credential's kubeconfig, which must not run programs or read files here."""
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError:
        # The parser's message would show a part of the secret.
        raise BadConfig("`kubeconfig` of the credential is not YAML") from None
    if not isinstance(config, dict):
        raise BadConfig("`kubeconfig` of the credential is not a mapping")
    parts = [
        (one.get(key) or {})
        for section, key in (("clusters", "cluster"), ("users", "user"))
        for one in config.get(section) or []
    ]
    for part in parts:
        if found := sorted(_RUNS_OR_READS & part.keys()):
            raise BadConfig(
                f"`kubeconfig` of a credential has {found[0]!r}, which would run a program or read "
                "a file on the worker; use a token or data in base64, or the worker's settings"
            )
    return config
