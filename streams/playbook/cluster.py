"""Tasks that run in a Kubernetes cluster: a note of what they need."""

from __future__ import annotations

from streams.playbook.auth import AUTH_KEYS
from streams.playbook.draft import PlaybookDraft
from streams.playbook.problem import Severity
from streams.playbook.yaml_document import Authored, Path

KINDS = ("container", "script")


def report_cluster(draft: PlaybookDraft, kind: str, config: Authored, path: Path) -> None:
    """Report a task without an image, and note one that names no cluster."""
    if kind not in KINDS:
        return
    if kind == "container" and not config.get("image") and "input" not in config:
        draft.report(path, "a container task needs `image`", "name one: image: alpine:3.20")
    if not any(config.get(key) for key in ("auth", *AUTH_KEYS)):
        what = "it runs as a Kubernetes Job, and is refused on a worker without a cluster"
        hint = "give it `auth`, set tools.kubernetes.kubeconfig, or run workers in the cluster"
        draft.report(path, what, hint, Severity.NOTE)
