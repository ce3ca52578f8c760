"""The prefix of the payloads' physical URIs."""

from __future__ import annotations

import pytest

from streams.settings.payload_store import PayloadStoreSettings

PLACES = [
    ({"backend": "s3", "connection": {"bucket": "b"}}, "s3://b/"),
    ({"backend": "seaweedfs", "connection": {"bucket": "b"}}, "s3://b/"),
    ({"backend": "gcs", "connection": {"bucket": "b"}}, "gs://b/"),
    ({"backend": "azure-blob", "connection": {"bucket": "b"}}, "az://b/"),
    ({"backend": "local", "connection": {"path": "/data/payloads"}}, "/data/payloads/"),
]


@pytest.mark.parametrize(("settings", "location"), PLACES)
def test_a_store_is_located_by_its_bucket_or_folder(
    settings: dict[str, object], location: str
) -> None:
    assert PayloadStoreSettings.model_validate(settings).location == location
