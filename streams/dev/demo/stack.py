"""The demo's stack: started with every role, and stopped with the demo."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from streams.data_folder import layout_of
from streams.errors import Refused
from streams.local.display import Display
from streams.local.service_rows import ServiceRows
from streams.local.settings import load_settings
from streams.local.stack import Stack
from streams.local.state import StackState, find_stack
from streams.local.status import role_address
from streams.roles.start import existing_roles
from streams.settings import Settings

FOLDER = Path(".streams-demo")


class RolesMissing(Refused):
    """The running stack lacks roles."""

    def __init__(self, data: Path, roles: list[str]) -> None:
        names = ", ".join(roles)
        super().__init__(
            f"the stack in {data} runs without {names}; stop it with "
            f"`streams down --data {data}`: the demo then starts its own"
        )


@asynccontextmanager
async def demo_stack(data: Path, display: Display) -> AsyncIterator[Settings]:
    """Run a stack during a block; one that is up in `data` is used and not stopped.

    Raises:
        RolesMissing: the running stack lacks roles.
        Unavailable: a dependency is missing; nothing is left running.
    """
    found = find_stack(data)
    if found is not None:
        _check_roles(found)
        yield load_settings(None, data).settings
        return
    roles = dict.fromkeys(existing_roles(), 1)
    stack = Stack(data, roles=roles, say=display.say, report=ServiceRows(display).report)
    with display:
        await stack.start()
    try:
        yield load_settings(None, data).settings
    finally:
        await stack.stop()


def api_url(data: Path) -> str | None:
    """Return the URL of the API of the stack in `data`, or None when it is not up."""
    return role_address(layout_of(data), "api-0") if find_stack(data) is not None else None


def _check_roles(state: StackState) -> None:
    running = {service.name.rpartition("-")[0] for service in state.services}
    if missing := [role for role in existing_roles() if role not in running]:
        raise RolesMissing(state.data, missing)
