"""Connections to Kubernetes clusters, and the meaning of their errors."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import orjson
from kubernetes.aio import client, config
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config import ConfigException

from streams.errors import Refused
from streams.worker.attempt.secrets import concealed
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.clients import Clients
from streams.worker.tools.container.job import CALL_LABEL, ContainerJob
from streams.worker.tools.container.login import ClusterLogin

REQUEST_S = 30.0
LOG_BYTES = 1 << 20
_LOG_LINES, _MOST_LOG_BYTES = 10_000, 16 << 20
_RETRIED = (429, 500, 502, 503, 504)


class ClusterRefused(Refused):
    """The cluster rejects a request."""


class _Connection:
    """One API client, opened by its first use."""

    def __init__(self, login: ClusterLogin) -> None:
        self._login, self._lock = login, asyncio.Lock()
        self._client: client.ApiClient | None = None

    async def api(self) -> client.ApiClient:
        """Return the open client."""
        async with self._lock:
            if self._client is None:
                self._client = client.ApiClient(await _configuration(self._login))
            return self._client

    async def close(self) -> None:
        """Close the client."""
        if self._client is not None:
            await self._client.close()


class Clusters:
    """Clusters of a worker, with one client for each login."""

    def __init__(self) -> None:
        self._clients = Clients[_Connection](_Connection.close)

    @asynccontextmanager
    async def use(self, login: ClusterLogin) -> AsyncIterator[Cluster]:
        """Yield a cluster.

        Raises:
            BadConfig: the kubeconfig is not valid.
            ClusterRefused: the cluster rejects a request.
            TargetUnavailable: the cluster cannot be reached.
        """
        key = (orjson.dumps(login.kubeconfig, default=str), str(login.path), login.context)
        with _translated():
            async with self._clients.use(key, lambda: _Connection(login)) as connection:
                yield Cluster(await connection.api())

    async def close(self) -> None:
        """Close all clients."""
        await self._clients.close()


class Cluster:
    """The requests that a container task makes."""

    def __init__(self, api: client.ApiClient) -> None:
        self._jobs, self._core = client.BatchV1Api(api), client.CoreV1Api(api)

    async def start(self, job: ContainerJob) -> tuple[client.V1Job, bool]:
        """Create the Job, or return that of an earlier attempt and True."""
        body = client.V1Job.from_dict(job.manifest)
        if body is None:
            raise ClusterRefused("the Job has no manifest")
        try:
            made = await self._jobs.create_namespaced_job(
                job.namespace, body, field_validation="Strict", _request_timeout=REQUEST_S
            )
        except ApiException as error:
            if error.status != 409:
                raise
        else:
            return made, False
        found = await self.read(job)
        labels = found.metadata.labels or {} if found and found.metadata else {}
        if found is None or labels.get(CALL_LABEL) != job.call_id:
            raise ClusterRefused(f"another Job {job.namespace}/{job.name} exists or was deleted")
        return found, True

    async def read(self, job: ContainerJob) -> client.V1Job | None:
        """Return the Job; None: it does not exist."""
        try:
            return await self._jobs.read_namespaced_job(
                job.name, job.namespace, _request_timeout=REQUEST_S
            )
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    async def newest_pod(self, job: ContainerJob) -> client.V1Pod | None:
        """Return the Job's last pod."""
        found = await self._core.list_namespaced_pod(
            job.namespace,
            label_selector=f"{CALL_LABEL}={job.call_id}",
            _request_timeout=REQUEST_S,
        )
        return max(found.items, key=_created, default=None)

    async def log(self, job: ContainerJob, pod: str) -> str | None:
        """Return the end of a pod's output; None: it cannot be read any more."""
        # The client would parse a log that happens to be JSON.
        answer = await self._core.read_namespaced_pod_log_without_preload_content(
            pod,
            job.namespace,
            tail_lines=_LOG_LINES,
            limit_bytes=_MOST_LOG_BYTES,
            _request_timeout=REQUEST_S,
        )
        said = await answer.read()
        if answer.status in (400, 403, 404):
            return None
        if answer.status >= 300:
            raise ApiException(status=answer.status, reason=answer.reason)
        return bytes(said[-LOG_BYTES:]).decode(errors="replace")


def _created(pod: client.V1Pod) -> str:
    made = pod.metadata.creation_timestamp if pod.metadata else None
    return "" if made is None else made.isoformat()


async def _configuration(login: ClusterLogin) -> client.Configuration:
    made = client.Configuration()
    if login.kubeconfig is not None:
        await config.load_kube_config_from_dict(
            dict(login.kubeconfig), context=login.context, client_configuration=made
        )
    elif login.path is not None:
        await config.load_kube_config(
            str(login.path), login.context, client_configuration=made, persist_config=False
        )
    else:
        config.load_incluster_config(client_configuration=made)
    return made


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        why = f"the cluster answered {error.status}: {_message(error)}"
        if error.status in _RETRIED:
            raise TargetUnavailable(f"{why}; retrying") from error
        raise ClusterRefused(why) from error
    except ConfigException as error:
        raise BadConfig(f"the kubeconfig is not valid: {concealed(str(error))[:300]}") from error
    except ssl.SSLError as error:
        raise ClusterRefused(f"the cluster's certificate: {error}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        what = concealed(str(error) or type(error).__name__)[:300]
        raise TargetUnavailable(f"the cluster: {what}; retrying") from error


def _message(error: ApiException) -> str:
    try:
        said = orjson.loads(error.body or b"{}").get("message")
    except (orjson.JSONDecodeError, AttributeError):
        said = None
    return concealed(str(said or error.reason or ""))[:500]
