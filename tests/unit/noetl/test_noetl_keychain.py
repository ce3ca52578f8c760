"""Secrets of a keychain are filled for the steps that read them, and stay out of the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.playbook.credentials import may_use_credential
from streams.playbook.model import Playbook
from streams.playbook.parse import check, parse
from streams.worker.attempt.keychain import Keychain
from streams.worker.attempt.secrets import concealed, holding
from streams.worker.errors import UnknownCredential
from tests.support.worker.memory import FakeTool, http_error, ok
from tests.support.worker.tool_calls import ITEM

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: t, path: tests/t}
workload: {key: sesame-open-wide}
keychain:
  - {name: own, kind: static, map: {id: "{{ key }}"}}
  - {name: bearer, kind: bearer, token: "{{ keychain.own.id }}!"}
  - {name: stored, kind: credential, auth: vault}
  - name: token
    kind: oauth2
    endpoint: http://tokens/{{ keychain.own.id }}
    data: {grant_type: client_credentials}
workflow:
  - step: start
    tool:
      kind: http
      url: http://x
      headers: {Authorization: "Bearer {{ keychain.token.access_token }}"}
"""


class Vault:
    async def find(self, tenant_id: str, organization_id: str, name: str) -> Mapping[str, str]:
        if name != "vault":
            raise UnknownCredential(name, "nowhere")
        return {"secret": "of-the-vault"}


async def values(playbook: Playbook, http: FakeTool) -> dict[str, Any]:
    scope = {"key": "sesame-open-wide"}
    return await Keychain(Vault(), {"http": http}).values(playbook.keychain, scope, ITEM)


async def test_entries_see_the_workload_and_those_before_them() -> None:
    http = FakeTool(lambda config, call: ok({"data": {"access_token": "abc"}}))
    found = await values(parse(TEXT), http)
    assert found["own"] == {"id": "sesame-open-wide"}
    assert found["bearer"]["token"] == "sesame-open-wide!"
    assert found["stored"] == {"secret": "of-the-vault"}
    assert found["token"] == {"access_token": "abc"}
    assert http.calls[0][0]["url"] == "http://tokens/sesame-open-wide"


async def test_an_entry_that_fails_is_empty_and_the_others_are_there() -> None:
    found = await values(parse(TEXT), FakeTool(lambda config, call: http_error(503)))
    assert (found["token"], found["own"]) == ({}, {"id": "sesame-open-wide"})


async def test_its_values_are_concealed_in_messages() -> None:
    http = FakeTool(lambda config, call: ok({"data": {"access_token": "abcdefghijk"}}))
    with holding(ITEM, "w1", lambda: 1e9):
        await values(parse(TEXT), http)
        text = concealed("refused abcdefghijk and of-the-vault")
    assert "abcdefghijk" not in text
    assert "of-the-vault" not in text


def test_a_step_that_reads_the_keychain_may_use_its_credentials() -> None:
    playbook = parse(TEXT)
    assert may_use_credential(playbook, "start", "vault")
    assert not may_use_credential(playbook, "start", "other")


def test_an_entry_that_nothing_fills_is_named() -> None:
    text = TEXT.replace("kind: static", "kind: google_id_token")
    made, problems = check(text)
    assert made is not None
    assert any("nothing fills an entry of kind 'google_id_token'" in str(one) for one in problems)
