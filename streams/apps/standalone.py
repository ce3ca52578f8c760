"""A role's application for Faust's own command, with the settings of `streams run`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from streams.data_folder import layout_of
from streams.kafka.transport.app import Application
from streams.local.settings import load_settings
from streams.settings import Settings


class RunRole(Protocol):
    """The function of a role, as `streams.app.ROLES` names it."""

    def __call__(
        self,
        settings: Settings,
        data: Path,
        stop: asyncio.Event,
        ready: Callable[[], None],
        app: Application | None = None,
    ) -> Awaitable[None]:
        """Run until `stop` is set."""
        ...


def standalone(build: Callable[[Settings, Path], Application], run: RunRole) -> Application:
    """Return the application of a role; once Faust has started it, the role runs in it."""
    settings, data = load_settings(None, None).settings, layout_of(None).data
    app = build(settings, data)

    async def role() -> None:
        stop = asyncio.Event()

        @app.on_before_shutdown.connect
        def end(*_: object, **__: object) -> None:
            stop.set()

        await run(settings, data, stop, lambda: None, app)

    app.standalone = role
    return app
