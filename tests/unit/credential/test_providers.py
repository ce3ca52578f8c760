"""Outside providers: only what they may give, to whom it belongs."""

from __future__ import annotations

import boto3
import pytest
from botocore.stub import Stubber

from streams.credential.aws import AwsProvider
from streams.credential.environment import EnvironmentProvider
from streams.credential.errors import BadCredential, ProviderUnavailable
from streams.credential.file import FileProvider
from streams.payload.port import Scope

SCOPE = Scope("acme", "care")


async def test_the_environment_gives_only_variables_made_for_it():
    found = EnvironmentProvider(
        {"NOETL_CREDENTIAL_PG_MAIN": "postgresql://h/db", "AWS_SECRET_ACCESS_KEY": "no"}
    )
    assert await found.find(SCOPE, "PG_MAIN") == {"dsn": "postgresql://h/db"}
    assert await found.find(SCOPE, "pg-main") == {"dsn": "postgresql://h/db"}
    assert await found.find(SCOPE, "AWS_SECRET_ACCESS_KEY") is None


async def test_a_file_of_the_callers_own_folder(tmp_path):
    (tmp_path / "acme" / "care").mkdir(parents=True)
    (tmp_path / "acme" / "care" / "pg").write_text('{"dsn": "postgresql://h/db"}')
    found = FileProvider(tmp_path)
    assert await found.find(SCOPE, "pg") == {"dsn": "postgresql://h/db"}
    assert await found.find(SCOPE, "other") is None
    assert await found.find(Scope("acme", "labs"), "pg") is None


@pytest.mark.parametrize("name", ["../labs/pg", "..", "/etc/passwd", "a/../b", "a\0b", ""])
async def test_a_file_outside_is_refused(tmp_path, name: str):
    with pytest.raises(BadCredential):
        await FileProvider(tmp_path).find(SCOPE, name)


async def test_a_link_out_of_the_folder_is_refused(tmp_path):
    own = tmp_path / "secrets" / "acme" / "care"
    own.mkdir(parents=True)
    (tmp_path / "outside").write_text("c4nary")
    (own / "pg").symlink_to(tmp_path / "outside")
    (own / "peer").symlink_to(tmp_path / "secrets" / "acme" / "labs")
    for name in ("pg", "peer"):
        with pytest.raises(BadCredential, match="outside its folder"):
            await FileProvider(tmp_path / "secrets").find(SCOPE, name)
    with pytest.raises(BadCredential):
        await FileProvider(tmp_path / "secrets").find(Scope("..", "care"), "pg")


async def test_a_file_that_is_no_text_or_too_long_is_refused(tmp_path):
    own = tmp_path / "acme" / "care"
    own.mkdir(parents=True)
    (own / "binary").write_bytes(b"\xff\xfe")
    (own / "long").write_bytes(b"x" * 70_000)
    for name in ("binary", "long"):
        with pytest.raises(BadCredential):
            await FileProvider(tmp_path).find(SCOPE, name)


@pytest.fixture
def aws():
    client = boto3.session.Session().client(
        "secretsmanager",
        region_name="eu-west-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    with Stubber(client) as stub:
        yield stub, AwsProvider(region="eu-west-1", client=client)
    client.close()


async def test_aws_is_asked_under_the_scopes_own_prefix(aws):
    stub, provider = aws
    stub.add_response(
        "get_secret_value",
        {"SecretString": '{"token": "abc"}'},
        {"SecretId": "noetl/acme/care/care_api"},
    )
    assert await provider.find(SCOPE, "care_api") == {"token": "abc"}


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("ResourceNotFoundException", None),
        ("AccessDeniedException", ProviderUnavailable),
        ("InternalServiceError", ProviderUnavailable),
        ("DecryptionFailure", BadCredential),
    ],
)
async def test_what_aws_refuses(aws, code, raised):
    stub, provider = aws
    stub.add_client_error("get_secret_value", code, "c4nary")
    if raised is None:
        assert await provider.find(SCOPE, "x") is None
        return
    with pytest.raises(raised) as caught:
        await provider.find(SCOPE, "x")
    assert code in str(caught.value)
    assert "c4nary" not in str(caught.value)


async def test_a_binary_secret_of_aws_cannot_be_used(aws):
    stub, provider = aws
    stub.add_response(
        "get_secret_value", {"SecretBinary": b"c4nary"}, {"SecretId": "noetl/acme/care/x"}
    )
    with pytest.raises(BadCredential, match="binary"):
        await provider.find(SCOPE, "x")


@pytest.mark.parametrize("name", ["arn:aws:secretsmanager:eu:1:secret:x", "", "a//b", "a b", "/x"])
async def test_a_name_that_could_lead_elsewhere_is_not_asked_for(aws, name: str):
    with pytest.raises(BadCredential):
        await aws[1].find(SCOPE, name)
