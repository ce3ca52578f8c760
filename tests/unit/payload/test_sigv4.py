"""Our signature is the one botocore makes."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from streams.payload.objects.sigv4 import Keys, sign


@pytest.mark.parametrize("token", [None, "a-token"])
@pytest.mark.parametrize("method", ["PUT", "GET"])
@pytest.mark.parametrize("path", ["/bucket/acme/care/sha256/00", "/bucket/a%252Fb/c%2520d~/x"])
def test_it_signs_as_botocore_does(method: str, path: str, token: str | None) -> None:
    body = b"some bytes" if method == "PUT" else b""
    more = {"x-amz-server-side-encryption": "AES256"} if method == "PUT" else {}
    theirs = AWSRequest(method, f"http://host:1234{path}", data=body, headers=more)
    theirs.context["payload_signing_enabled"] = True
    S3SigV4Auth(Credentials("access", "secret", token), "s3", "eu-west-1").add_auth(theirs)
    stamp = datetime.strptime(theirs.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)

    ours = sign(
        method,
        "host:1234",
        path,
        content_sha256=sha256(body).hexdigest(),
        region="eu-west-1",
        keys=Keys("access", "secret", token),
        now=stamp,
        headers=more,
    )

    assert ours["authorization"] == theirs.headers["Authorization"]
