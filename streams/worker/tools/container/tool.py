"""The tool of `kind: container`: runs a task as a Kubernetes Job."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Credentials, Outcome
from streams.worker.tools.container.job import container_job
from streams.worker.tools.container.login import NO_CLUSTER, KubernetesConfig, cluster_login
from streams.worker.tools.task_config import failed

if TYPE_CHECKING:  # the client package is optional
    from streams.worker.tools.container.cluster import Clusters

_MISSING = (
    "a container task needs the package kubernetes, which is not installed: "
    'pip install "noetl-streams[kubernetes]"'
)


class ContainerTool:
    """Creates a Job, waits for its end and returns exit code and output.

    The Job's name is derived from the call, so a later attempt adopts the Job of an earlier one
    for as long as the cluster has it.
    """

    def __init__(
        self, credentials: Credentials, settings: KubernetesConfig, *, deployment: str
    ) -> None:
        self._credentials, self._settings, self._deployment = credentials, settings, deployment
        self._clusters: Clusters | None = None

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the task once.

        Raises:
            TargetUnavailable: the cluster cannot be reached.
        """
        try:
            login = cluster_login(await self._secret(config, call), self._settings)
            if login is None:
                image = config.get("image")
                return failed("container.refused", f"{image or 'container'}: {NO_CLUSTER}")
            if find_spec("kubernetes") is None:
                raise BadConfig(_MISSING)
            job = container_job(
                config, call, deployment=self._deployment, namespace=self._settings.namespace
            )
        except BadConfig as error:
            return failed("container.config", str(error))
        from streams.worker.tools.container.cluster import ClusterRefused, Clusters
        from streams.worker.tools.container.progress import job_end, outcome_of

        self._clusters = self._clusters or Clusters()
        try:
            async with self._clusters.use(login) as cluster:
                _, is_adopted = await cluster.start(job)
                with call.released_slot():
                    end = await job_end(cluster, job)
        except BadConfig as error:
            return failed("container.config", str(error))
        except ClusterRefused as error:
            return failed("container.refused", str(error))
        return outcome_of(job, end, is_adopted=is_adopted)

    async def close(self) -> None:
        """Close the clients."""
        if self._clusters is not None:
            await self._clusters.close()

    async def _secret(self, config: Config, call: Call) -> Mapping[str, str]:
        name = config.get("auth") or config.get("credential")
        if name is None:
            return {}
        return await self._credentials.find(call.tenant_id, call.organization_id, str(name))
