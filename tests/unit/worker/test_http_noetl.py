"""Requests and answers of NoETL's spelling against a server on this machine."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from streams.playbook.spelling import Spelling
from streams.worker.errors import BadConfig
from streams.worker.port import Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.http.noetl import FORM, as_request
from streams.worker.tools.http.tool import HttpTool
from tests.support.worker.tool_calls import CALL

NOETL = replace(CALL, spelling=Spelling.NOETL)


async def serve(request: web.Request) -> web.Response:
    if request.path == "/moved":
        raise web.HTTPFound("/end")
    if request.path == "/wrong":
        return web.Response(text="{no", content_type="application/json")
    status = int(request.query.get("status", 200))
    body = {"query": dict(request.query), "text": await request.text(), "data": [1]}
    body["kind"] = request.headers.get("Content-Type", "")
    return web.json_response(body, status=status, headers={"Retry-After": "3"})


@pytest.fixture
async def url() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{name}", serve)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def run(call: Any = NOETL, **config: Any) -> Outcome:
    key = {"header_name": "X-Own", "api_key": "k"}
    tool = HttpTool(ConfiguredCredentials({"key": key}, {}))
    try:
        return await tool.run(config, call)
    finally:
        await tool.close()


def data(outcome: Outcome) -> dict[str, Any]:
    assert isinstance(outcome.data, dict)
    return outcome.data


async def test_an_answer_has_its_status_headers_and_body_under_two_names(url: str) -> None:
    outcome = await run(url=f"{url}/a", params={"n": 1, "none": None, "yes": True})
    found = data(outcome)
    assert outcome.status == "success"
    assert found["data"]["query"] == {"n": "1", "yes": "true"}
    assert found["data"] == found["body"]
    assert (found["status_code"], found["url"]) == (200, f"{url}/a?n=1&yes=true")
    assert found["headers"]["retry-after"] == "3"
    assert 0 < found["elapsed"] < 30


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (429, "rate_limit", True),
        (401, "auth", False),
        (403, "auth", False),
        (404, "not_found", False),
        (422, "client_error", False),
        (503, "server_error", True),
    ],
)
async def test_an_error_is_named_by_its_status_and_keeps_the_body(
    url: str, status: int, kind: str, retryable: bool
) -> None:
    outcome = await run(endpoint=f"{url}/a", params={"status": status})
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == (kind, retryable)
    assert {outcome.error[name] for name in ("status", "status_code", "code")} == {status}
    assert data(outcome)["data"]["data"] == [1]
    assert outcome.detail["http"]["status"] == status  # type: ignore[index, call-overload]


async def test_no_answer_is_an_error_that_may_be_retried() -> None:
    outcome = await run(url="http://127.0.0.1:1/x", timeout_seconds=2)
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("connection", True)
    wrong = await run(url="http://127.0.0.1:1/x", auth="unknown")
    assert wrong.error is not None
    assert (wrong.error["kind"], wrong.error["retryable"]) == ("config", False)


async def test_a_body_that_is_not_the_json_it_claims_is_text(url: str) -> None:
    assert data(await run(url=f"{url}/wrong"))["data"] == "{no"
    plain = await run(CALL, url=f"{url}/wrong")
    assert plain.error is not None
    assert plain.error["kind"] == "http.json"


BODIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"method": "GET", "data": {"a": 1}}, {"query": {"a": "1"}, "text": ""}),
    ({"method": "delete", "data": {"a": 1}}, {"query": {"a": "1"}, "text": ""}),
    ({"method": "POST", "data": {"a": 1}}, {"query": {}, "text": '{"a":1}'}),
    (
        {"method": "POST", "data": {"query": {"q": 1}, "body": {"a": 1}}},
        {"query": {"q": "1"}, "text": '{"a":1}'},
    ),
    ({"method": "POST", "payload": {"a": 1}}, {"text": '{"a":1}', "kind": "application/json"}),
    ({"method": "PUT", "json": [1]}, {"text": "[1]", "kind": "application/json"}),
    ({"method": "POST", "body": "raw"}, {"text": "raw"}),
    ({"method": "POST", "form": {"a": "x y", "b": None}}, {"text": "a=x+y", "kind": FORM}),
    (
        {"method": "POST", "headers": {"content-type": FORM}, "data": {"a": 1, "b": [2, 3]}},
        {"text": "a=1&b=2&b=3", "kind": FORM},
    ),
]


@pytest.mark.parametrize(("config", "expected"), BODIES)
async def test_a_body_goes_where_its_method_and_content_type_lead(
    url: str, config: dict[str, Any], expected: dict[str, Any]
) -> None:
    got = data(await run(url=f"{url}/a", **config))["data"]
    assert {name: got[name] for name in expected} == expected


def test_two_bodies_are_refused() -> None:
    with pytest.raises(BadConfig, match="'json' and 'form' are given"):
        as_request({"method": "POST", "json": {}, "form": {}})


@pytest.mark.parametrize("call", [CALL, NOETL])
@pytest.mark.parametrize("auth", [None, "key"])
async def test_redirects_are_followed_unless_the_task_forbids_it(
    url: str, call: Any, auth: str | None
) -> None:
    for follow, status in ((None, 200), (True, 200), (False, 302), ("false", 302)):
        outcome = await run(call, url=f"{url}/moved", follow_redirects=follow, auth=auth)
        assert outcome.detail["http"]["status"] == status  # type: ignore[index, call-overload]
    wrong = await run(call, url=f"{url}/moved", follow_redirects="maybe")
    assert wrong.error is not None
    assert "'follow_redirects' must be true or false" in str(wrong.error["message"])


@pytest.mark.parametrize("call", [CALL, NOETL])
async def test_certificates_are_verified_unless_the_task_forbids_it(
    call: Any, tmp_path: Path
) -> None:
    app = web.Application()
    app.router.add_get("/{name}", serve)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=_self_signed(tmp_path))
    try:
        place = str(server.make_url("/a"))
        for name in ("verify", "verify_ssl"):
            assert (await run(call, url=place, **{name: False})).status == "success"
        assert (await run(call, url=place)).status == "error"
    finally:
        await server.close()


def _self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1)
    builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    made = builder.sign(key, hashes.SHA256())
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, none)
    (folder / "both.pem").write_bytes(private + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context
