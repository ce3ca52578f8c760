"""The tool that runs shell commands, where the deployment allows it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.shell.command import ShellResult, run_command
from streams.worker.tools.task_config import failed, mapping, seconds, text

TIMEOUT_S = 300.0
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR")
_QUOTED_CHARS = 500
_REFUSED = (
    "shell commands are refused by this deployment: they run with all rights of the worker's "
    "account; set `tools.shell: true` where every author is trusted with these"
)


class ShellTool:
    """Runs `cmds` (a list, or text) or `command`, each with `/bin/sh -c`, until one fails.

    `env` adds variables to a small environment without the worker's secrets; `cwd` is the
    folder. Whatever a command leaves in the background ends with it, and all of it with the
    worker. There is no fence: a retried attempt runs the commands again.
    """

    def __init__(self, *, is_allowed: bool, timeout_s: float = TIMEOUT_S) -> None:
        self._is_allowed, self._timeout_s = is_allowed, timeout_s

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the commands."""
        if not self._is_allowed:
            return failed("shell.refused", _REFUSED)
        done: list[ShellResult] = []
        limit = self._timeout_s
        try:
            commands, env, folder = _commands(config), _environment(config), _folder(config)
            limit = seconds(config, call, self._timeout_s) or limit
            async with asyncio.timeout(limit):
                for command in commands:
                    done.append(await run_command(command, env, folder))
                    if done[-1].exit_code:
                        break
        except BadConfig as error:
            return failed("shell.config", str(error))
        except TimeoutError:
            why = f"command {len(done) + 1} of {len(commands)} was killed after {limit:g} s"
            return failed("shell.timeout", why, data=_data(done))
        except OSError as error:
            return failed("shell.start", f"command {len(done) + 1} cannot start: {error.strerror}")
        return _outcome(done, len(commands))

    async def close(self) -> None:
        """Do nothing: every command has ended with its call."""


def _outcome(done: Sequence[ShellResult], count: int) -> Outcome:
    data, last = _data(done), done[-1]
    if last.exit_code == 0:
        return Outcome(status="success", data=data)
    quoted = (last.stderr.strip() or last.stdout.strip())[-_QUOTED_CHARS:]
    message = f"command {len(done)} of {count} ended with exit code {last.exit_code}: {quoted}"
    problem: dict[str, Json] = {"kind": "shell.exit", "message": message, "retryable": False}
    return Outcome(status="error", data=data, error={**problem, "code": last.exit_code})


def _data(done: Sequence[ShellResult]) -> dict[str, Json]:
    commands: list[Json] = [
        {"exit_code": one.exit_code, "stdout": one.stdout, "stderr": one.stderr} for one in done
    ]
    return {
        "exit_code": done[-1].exit_code if done else None,
        "stdout": "".join(one.stdout for one in done),
        "stderr": "".join(one.stderr for one in done),
        "commands": commands,
    }


def _commands(config: Config) -> list[str]:
    given = config.get("cmds")
    if not isinstance(given, list):
        return [text(config, "cmds", "command", "cmd")]
    commands = [one for one in given if isinstance(one, str) and "\0" not in one]
    if not given or len(commands) != len(given):
        raise BadConfig("'cmds' must be a list of at least one text")
    return commands


def _environment(config: Config) -> dict[str, str]:
    env = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    for name, value in mapping(config, "env").items():
        if "=" in name or "\0" in f"{name}{value}":
            raise BadConfig(f"'env' has a name or value that no environment can hold: {name!r}")
        env[name] = "" if value is None else str(value)
    return env


def _folder(config: Config) -> Path | None:
    given = config.get("cwd")
    if given is None:
        return None
    folder = Path(str(given))
    if not folder.is_dir():
        raise BadConfig(f"'cwd' is {str(folder)!r}, which is not a folder on this worker")
    return folder
