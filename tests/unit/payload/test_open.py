"""Opening the place of the payloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.open import open_payloads
from streams.settings import Settings


async def test_a_bucket_without_keys_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    place = {"endpoint": "http://127.0.0.1:9", "bucket": "b"}
    settings = Settings.model_validate({"payload_store": {"backend": "s3", "connection": place}})
    with pytest.raises(PayloadUnavailable, match="no keys for the object store"):
        async with open_payloads(settings):
            pass
