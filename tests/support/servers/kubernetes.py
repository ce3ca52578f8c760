"""The part of a Kubernetes API that a container task uses, with the end of each Job as set.

It stands in for API server, Job controller and kubelet; docs/tools.md lists what was also tried
on a real API server with its Job controller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "a token of this test"
_BEGUN, _ENDED = "2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"


@dataclass(slots=True)
class KubernetesServer:
    """Jobs by name; `end` is how those created next end, None: they do not."""

    port: int = 0
    end: dict[str, Any] | None = None
    log: str = ""
    status: int = 200
    """Answer to every request, if it is an error."""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    @property
    def login(self) -> dict[str, str]:
        """Fields of a credential."""
        return {"server": f"http://127.0.0.1:{self.port}", "token": TOKEN}

    def finish(self, name: str, code: int, reason: str) -> None:
        """Set the status of a Job and its pod, as the cluster does after its container ended."""
        condition = {"type": "Complete" if code == 0 else "Failed", "status": "True"}
        condition |= {"lastTransitionTime": _ENDED, "lastProbeTime": _ENDED}
        if code:
            condition |= {"reason": "BackoffLimitExceeded", "message": "it failed"}
        if reason == "DeadlineExceeded":
            condition["reason"] = reason
        counts = {"succeeded": int(code == 0), "failed": int(code != 0)}
        self.jobs[name]["status"] = {"startTime": _BEGUN, "conditions": [condition], **counts}
        stopped = {"exitCode": code, "reason": reason, "startedAt": _BEGUN, "finishedAt": _ENDED}
        self.set_state(name, {"terminated": stopped})
        if reason == "DeadlineExceeded":
            del self.pods[f"{name}-pod"]

    def set_state(self, name: str, state: dict[str, Any]) -> None:
        """Set the state of a Job's container."""
        status = {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
        self.pods[f"{name}-pod"]["status"] = {"containerStatuses": [{**status, "state": state}]}

    async def create(self, request: web.Request) -> web.Response:
        """Create a Job and its pod."""
        body = await request.json()
        name, labels = body["metadata"]["name"], body["metadata"]["labels"]
        if name in self.jobs:
            return _refused(409, f'jobs.batch "{name}" already exists')
        self.jobs[name] = body | {"status": {}}
        metadata = {"name": f"{name}-pod", "labels": labels, "creationTimestamp": _BEGUN}
        spec = body["spec"]["template"]["spec"]
        self.pods[f"{name}-pod"] = {"metadata": metadata, "spec": spec, "status": {}}
        if self.end is not None:
            self.finish(name, **self.end)
        return web.json_response(body, status=201)

    async def read(self, request: web.Request) -> web.Response:
        """Return a Job."""
        found = self.jobs.get(request.match_info["name"])
        return _refused(404, "not found") if found is None else web.json_response(found)

    async def list_pods(self, request: web.Request) -> web.Response:
        """Return the pods with a label."""
        name, _, value = request.query["labelSelector"].partition("=")
        items = [p for p in self.pods.values() if p["metadata"]["labels"].get(name) == value]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "items": items})

    async def read_log(self, request: web.Request) -> web.Response:
        """Return the output of a pod."""
        return web.Response(text=self.log)

    @web.middleware
    async def check(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Count a request, and refuse one without the token or in another namespace."""
        self.requests.append(f"{request.method} {request.path}")
        if self.status >= 400:
            return _refused(self.status, "as set by the test")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _refused(401, "Unauthorized")
        if (namespace := request.match_info["namespace"]) != "noetl":
            return _refused(404, f'namespaces "{namespace}" not found')
        answer: web.StreamResponse = await handler(request)
        return answer


@asynccontextmanager
async def kubernetes_server() -> AsyncIterator[KubernetesServer]:
    """Run a server on this machine's loopback."""
    server = KubernetesServer()
    app = web.Application(middlewares=[server.check])
    jobs, pods = "/apis/batch/v1/namespaces/{namespace}/jobs", "/api/v1/namespaces/{namespace}/pods"
    app.router.add_post(jobs, server.create)
    app.router.add_get(jobs + "/{name}", server.read)
    app.router.add_get(pods, server.list_pods)
    app.router.add_get(pods + "/{name}/log", server.read_log)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


def _refused(status: int, message: str) -> web.Response:
    body = {"kind": "Status", "status": "Failure", "message": message, "code": status}
    return web.json_response(body, status=status)
