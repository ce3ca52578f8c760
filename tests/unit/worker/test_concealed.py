"""What a tool says of its login does not leave the attempt: errors, results, refusals, bugs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streams.clock import SettableClock
from streams.errors import Refused
from streams.payload.arrow.rows import decode_rows
from streams.playbook.data_flow import key_paths_of
from streams.playbook.model import Step
from streams.worker.attempt.command import CommandRunner
from streams.worker.attempt.frame import FrameRunner
from streams.worker.attempt.secrets import LeasedCredentials
from streams.worker.errors import SaveFailed
from streams.worker.port import Call, Config, Fence, Outcome, Saved
from streams.worker.tools.credentials import ConfiguredCredentials
from tests.support.worker.memory import FakeSaver, World, loop_step, ok, task

DSN = "postgresql://ada:c4nary-word@h/db"


class Talkative(FakeSaver):
    """A tool that logs in, and then quotes its login in the way that is asked for."""

    def __init__(self) -> None:
        super().__init__()
        own = ConfiguredCredentials({"pg": {"dsn": DSN}}, {})
        self._credentials = LeasedCredentials(own, None, SettableClock())  # type: ignore[arg-type]

    async def run(self, config: Config, call: Call) -> Outcome:
        fields = await self._credentials.find("acme", "care", config["auth"])
        said = f"logged in with {fields['dsn']} by c4nary-word"
        match config["how"]:
            case "refused":
                raise Refused(said)
            case "bug":
                raise ValueError(said)
            case "error":
                error = {"kind": "x", "message": said, "more": [said]}
                return Outcome(status="error", error=error, detail={"pg": {"said": said}})
        return ok({"said": [said]}, meta={"said": said})

    async def save(self, batches: Any, saved: Saved, spelling: Any) -> Mapping[Fence, Saved]:
        await self._credentials.find("acme", "care", "pg")
        raise SaveFailed(batches[0][0].task, f"refused by {DSN}")


@pytest.mark.parametrize("how", ["refused", "bug", "error", "result", "save"])
async def test_the_log_and_the_payloads_have_no_secret(how: str) -> None:
    config = {"auth": "pg", "how": how}
    one = task("one", "t", config, deferrable=how == "save")
    here = World(loop_step(one), {"t": Talkative()})
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a"]))
    events = await here.events()
    text_of_events = repr(events)
    assert "c4nary" not in text_of_events
    last = events[-1]
    if how == "result":
        assert last.payload_ref is not None
        rows = decode_rows(await here.payloads.get(last.payload_ref))
        assert rows == [{"said": ["logged in with *** by ***"]}]
    else:
        assert "***" in text_of_events


async def test_what_was_logged_in_for_is_not_changed_otherwise() -> None:
    tool = Talkative()
    here = World(loop_step(task("one", "t", {"auth": "pg", "how": "result"})), {"t": tool})
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a", "b"]))
    assert (await here.last()).meta["failed_rows"] == 0


class Plain(FakeSaver):
    """Logs in and answers as its script says."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        own = ConfiguredCredentials({"own": dict(fields)}, {})
        self._credentials = LeasedCredentials(own, None, SettableClock())  # type: ignore[arg-type]

    async def run(self, config: Config, call: Call) -> Outcome:
        if "auth" in config:
            await self._credentials.find("acme", "care", config["auth"])
        return ok(config["row"])


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "h", "password": "pw-123456", "tls": "true"},
        {"dsn": "postgresql://demo:demo@h/db"},
        {"token": "true"},
    ],
)
async def test_a_word_of_a_credential_changes_no_row(fields: Mapping[str, str]) -> None:
    row = {"active": "true", "who": "demo user", "k": {"demo": 1}}
    one = task("one", "t", {"auth": "own", "row": row})
    here = World(loop_step(one, task("two", "t", {"row": row})), {"t": Plain(fields)})
    await FrameRunner(here.ports, here.options()).run(await here.frame(["a"]))
    last = (await here.events())[-1]
    assert last.payload_ref is not None
    assert decode_rows(await here.payloads.get(last.payload_ref)) == [row]


async def test_a_word_of_a_credential_changes_no_result_of_a_command() -> None:
    tool = Plain({"host": "h", "password": "pw-123456", "tls": "true", "extra": "demo"})
    row = {"active": "true", "who": "demo user", "demo": 1}
    tasks = (task("one", "t", {"auth": "own", "row": {}}), task("two", "t", {"row": row}))
    here = World(Step(name="once", tasks=tasks, key_paths=key_paths_of(tasks, None)), {"t": tool})
    await CommandRunner(here.ports, here.options()).run(await here.command())
    result: Any = (await here.last()).result
    assert result["data"] == row
