"""AWS Secrets Manager's protocol over a real connection: request, signature, answers, silence."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from streams.credential.aws import AwsProvider
from streams.credential.errors import BadCredential, ProviderUnavailable
from streams.payload.port import Scope

SCOPE = Scope("acme", "care")
ACCESS, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI-example", "eu-west-1"


@dataclass
class Manager:
    """A server that speaks GetSecretValue, and refuses what is not signed with the right key."""

    url: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    status: int = 200
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers["X-Amz-Target"] != "secretsmanager.GetSecretValue":
            return _error("UnknownOperationException")
        if not _is_signed(request, self.url, body):
            return _error("InvalidSignatureException")
        if self.status != 200:
            return _error("InternalServiceError", self.status)
        name = orjson.loads(body)["SecretId"]
        self.asked.append(name)
        if name not in self.secrets:
            return _error("ResourceNotFoundException")
        fields = {"ARN": f"arn:aws:secretsmanager:{REGION}:1:secret:{name}", "Name": name}
        return _json({**fields, "VersionId": "v" * 32, "SecretString": self.secrets[name]})


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=orjson.dumps(body), status=status, content_type="application/x-amz-json-1.1"
    )


def _error(kind: str, status: int = 400) -> web.Response:
    return _json({"__type": kind, "message": "c4nary"}, status)


def _is_signed(request: web.Request, url: str, body: bytes) -> bool:
    """Make the signature again from what arrived, and compare."""
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(\S+?)/\S+, SignedHeaders=(\S+), Signature=(\S+)",
        request.headers["Authorization"],
    )
    if match is None or match[1] != ACCESS:
        return False
    signed = {name: request.headers[name] for name in match[2].split(";")}
    again = AWSRequest("POST", f"{url}/", headers=signed, data=body)
    again.context["timestamp"] = request.headers["X-Amz-Date"]
    auth = SigV4Auth(Credentials(ACCESS, SECRET), "secretsmanager", REGION)
    text = auth.string_to_sign(again, auth.canonical_request(again))
    return bool(auth.signature(text, again) == match[3])


@pytest.fixture
async def manager(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Manager]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    made = Manager()
    app = web.Application()
    app.router.add_post("/", made.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


async def test_a_secret_is_asked_for_and_read(manager: Manager) -> None:
    manager.secrets["noetl/acme/care/pg"] = '{"dsn": "postgresql://h/db"}'
    provider = AwsProvider(region=REGION, endpoint=manager.url)
    assert await provider.find(SCOPE, "pg") == {"dsn": "postgresql://h/db"}
    assert await provider.find(SCOPE, "none") is None
    assert await provider.find(Scope("other", "care"), "pg") is None
    assert manager.asked == ["noetl/acme/care/pg", "noetl/acme/care/none", "noetl/other/care/pg"]


async def test_a_wrong_login_is_refused_without_quoting_anything(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-key")
    with pytest.raises(ProviderUnavailable, match="InvalidSignature") as caught:
        await AwsProvider(region=REGION, endpoint=manager.url).find(SCOPE, "pg")
    assert "another-key" not in str(caught.value)
    assert "c4nary" not in str(caught.value)
    assert manager.asked == []


async def test_a_secret_that_is_no_credential_is_refused(manager: Manager) -> None:
    manager.secrets["noetl/acme/care/pg"] = '{"dsn": c4nary'
    with pytest.raises(BadCredential) as caught:
        await AwsProvider(region=REGION, endpoint=manager.url).find(SCOPE, "pg")
    assert "c4nary" not in str(caught.value)


async def test_a_server_that_fails_or_is_not_there_is_unavailable(manager: Manager) -> None:
    manager.status = 500
    with pytest.raises(ProviderUnavailable, match="InternalServiceError"):
        await AwsProvider(region=REGION, endpoint=manager.url).find(SCOPE, "pg")
    with pytest.raises(ProviderUnavailable, match="does not answer"):
        await AwsProvider(region=REGION, endpoint="http://127.0.0.1:1").find(SCOPE, "pg")
