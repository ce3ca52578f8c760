"""A client of Kafka Connect's REST interface."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote

import aiohttp

from streams.mirror.connect_errors import (
    BadConnector,
    ConnectorFailed,
    ConnectorUnknown,
    ConnectRefused,
    ConnectUnavailable,
)
from streams.mirror.connector_status import ConnectorStatus, ConnectorTask

Applied = Literal["created", "changed", "unchanged"]

_BUSY = 409
"""Connect's answer while its workers agree on who does what; it passes."""

_JSON = {"Content-Type": "application/json"}
_PAUSE_S = 0.1


class ConnectClient:
    """One Connect cluster; use it as an async context manager.

    Every method raises ConnectUnavailable when there is no usable answer and
    ConnectRefused (ConnectorUnknown for a wrong name) when Connect refuses.
    """

    def __init__(self, url: str, *, timeout_s: float = 30.0) -> None:
        self.url, self._timeout_s = url.rstrip("/"), timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> ConnectClient:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._timeout_s), raise_for_status=False
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def names(self) -> tuple[str, ...]:
        """Name every connector there is."""
        return tuple(sorted(await self._call("GET", "/connectors")))

    async def config(self, name: str) -> dict[str, str]:
        """Return the configuration as applied; secrets in it are still references."""
        return dict(await self._call("GET", _path(name, "config")))

    async def apply(self, name: str, config: Mapping[str, str]) -> Applied:
        """Create the connector or give it this configuration.

        An equal configuration is not sent: Connect would restart the connector for it. A
        running one is stopped for the change, so that what is reported as running afterwards
        is the new one; one that was paused or stopped stays so.

        Raises:
            BadConnector: Connect finds fields invalid; the error names each.
        """
        wanted = {**config, "name": name}
        try:
            if await self.config(name) == wanted:
                return "unchanged"
            existed = True
        except ConnectorUnknown:
            existed = False
        # Asked first: the call that sets the configuration names no fields (Kafka 4.3.1: a 500).
        if problems := await self.validate(wanted):
            raise BadConnector(name, problems)
        at_work = existed and not (await self.status(name)).at_rest
        if at_work:
            await self.stop(name)
            await self.wait_until_stopped(name)
        await self._call("PUT", _path(name, "config"), wanted)
        if at_work:
            await self.resume(name)
        return "changed" if existed else "created"

    async def validate(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return Connect's complaint for each field it finds invalid."""
        plugin = quote(config["connector.class"].rsplit(".", 1)[-1], safe="")
        path = f"/connector-plugins/{plugin}/config/validate"
        answer = await self._call("PUT", path, dict(config))
        # A field of a plugin that is chosen elsewhere may come without a value.
        values = [entry["value"] for entry in answer["configs"] if entry.get("value")]
        return {value["name"]: " ".join(value["errors"]) for value in values if value["errors"]}

    async def status(self, name: str) -> ConnectorStatus:
        """Return the state of the connector and its tasks."""
        answer = await self._call("GET", _path(name, "status"))
        tasks = sorted(
            (
                ConnectorTask(task["id"], task["state"], task.get("trace", ""))
                for task in answer["tasks"]
            ),
            key=lambda task: task.task_id,
        )
        own = answer["connector"]
        return ConnectorStatus(name, own["state"], tuple(tasks), own.get("trace", ""))

    async def restart(self, name: str) -> None:
        """Stop the connector with its tasks, and start it again once it has stopped.

        Connect's own restart call answers before anything has happened; whoever then asks
        for the status cannot tell the old tasks, or their failure, from the new.
        """
        await self.stop(name)
        await self.wait_until_stopped(name)
        await self.resume(name)

    async def restart_failed(self, name: str) -> None:
        """Start again what failed, the connector or its tasks; Connect answers before it has."""
        query = "includeTasks=true&onlyFailed=true"
        await self._call("POST", f"{_path(name, 'restart')}?{query}")

    async def stop(self, name: str) -> None:
        """End the tasks and release what they hold; offsets can then be changed."""
        await self._call("PUT", _path(name, "stop"))

    async def pause(self, name: str) -> None:
        """Stop reading, but keep the tasks; offsets stay as they are."""
        await self._call("PUT", _path(name, "pause"))

    async def resume(self, name: str) -> None:
        """Resume a paused or stopped connector."""
        await self._call("PUT", _path(name, "resume"))

    async def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return how far the connector has read, one entry for each source partition."""
        return tuple((await self._call("GET", _path(name, "offsets")))["offsets"])

    async def delete_offsets(self, name: str) -> None:
        """Forget how far the connector has read; it must be stopped."""
        await self._call("DELETE", _path(name, "offsets"))

    async def delete(self, name: str) -> None:
        """Remove the connector; its offsets stay."""
        await self._call("DELETE", _path(name))

    async def wait_until_running(self, name: str, *, timeout_s: float = 60.0) -> ConnectorStatus:
        """Return once the connector and its tasks run.

        Raises:
            ConnectorFailed: one of them failed, or they did not run in time.
        """
        return await self._wait(name, lambda status: status.running, "running", timeout_s)

    async def wait_until_settled(self, name: str, *, timeout_s: float = 60.0) -> ConnectorStatus:
        """Return once the connector runs, or at once if someone paused or stopped it.

        Raises:
            ConnectorFailed: it failed, or did neither in time.
        """
        return await self._wait(name, lambda one: one.running or one.at_rest, "running", timeout_s)

    async def wait_until_stopped(self, name: str, *, timeout_s: float = 60.0) -> ConnectorStatus:
        """Return once the connector is stopped and has no task left.

        Raises:
            ConnectorFailed: it did not stop in time.
        """
        return await self._wait(
            name, lambda status: status.state == "STOPPED" and not status.tasks, None, timeout_s
        )

    async def _wait(
        self,
        name: str,
        reached: Callable[[ConnectorStatus], bool],
        goal: str | None,
        timeout_s: float,
    ) -> ConnectorStatus:
        deadline = time.monotonic() + timeout_s
        status: ConnectorStatus | None = None
        while time.monotonic() < deadline:
            try:
                status = await self.status(name)
            except ConnectorUnknown:  # just created: not every worker has heard of it
                status = None
            if status and reached(status):
                return status
            if status and goal and (failure := status.failure):
                raise ConnectorFailed(
                    f"connector {name} failed: {failure}; "
                    f"correct the cause, then `streams connectors restart {name}`"
                )
            await asyncio.sleep(_PAUSE_S)
        raise ConnectorFailed(
            f"connector {name} is not {goal or 'stopped'} after {timeout_s:.0f} s "
            f"({status or 'unknown to Connect'}); Connect's own log may say why"
        )

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        """Ask Connect, again while its workers are rebalancing."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            code, answer = await self._ask(method, path, body)
            if code != _BUSY or time.monotonic() > deadline:
                break
            await asyncio.sleep(_PAUSE_S)
        if code < 400:
            return answer
        reason = answer.get("message") if isinstance(answer, dict) else None
        message = f"{self.url}{path}: Connect answers {code}: {_one_line(reason or 'no reason')}"
        if code == 404:
            raise ConnectorUnknown(message)
        if code == _BUSY or code >= 500:
            raise ConnectUnavailable(message)
        raise ConnectRefused(message)

    async def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self._session is None:
            raise RuntimeError("use Connect as an async context manager")
        try:
            # Without a body aiohttp would name a type that Connect does not take.
            ask = self._session.request(method, self.url + path, json=body, headers=_JSON)
            async with ask as response:
                # An empty or non-JSON body still comes with a code that says enough.
                text = await response.text()
                is_json = response.content_type == "application/json" and text
                return response.status, await response.json() if is_json else text
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ConnectUnavailable(
                f"{self.url}: no answer from Kafka Connect ({error or type(error).__name__}); "
                "see that it is up and that connect.url names it"
            ) from error


def _path(name: str, *rest: str) -> str:
    return "/".join(("/connectors", quote(name, safe=""), *rest))


def _one_line(text: str) -> str:
    return " ".join(text.split())
