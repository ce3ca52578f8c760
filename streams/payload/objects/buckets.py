"""Cloud buckets and containers, opened with obstore."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from streams.payload.errors import NoSuchBackend, PayloadUnavailable
from streams.settings.payload_store import PayloadConnection

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, RetryConfig, S3Config

LIMIT_S = 30.0
"""Timeout of a request with its transfer: a paused server never answers."""
_CONNECT_S = 5.0
_NO_KEYS = (
    "no keys for the object store: set payload_store.connection.access_key and secret_key, or "
    "give this machine keys that boto3 finds"
)


def s3_bucket(
    place: PayloadConnection, *, encrypt: bool = False, limit_s: float = LIMIT_S
) -> ObjectStore:
    """Open a bucket of an S3-compatible server; boto3 looks up keys that are not given.

    Raises:
        PayloadUnavailable: there are no keys.
    """
    config: S3Config = {"region": place.region}
    if place.endpoint is not None:
        config["endpoint"] = place.endpoint.rstrip("/")
    if encrypt:
        config["server_side_encryption"] = "AES256"
    if place.access_key is None or place.secret_key is None:
        # Importing boto3 takes a quarter of a second; not needed if keys are given.
        from obstore.auth.boto3 import Boto3CredentialProvider

        try:
            keys = Boto3CredentialProvider()
        except ValueError:
            raise PayloadUnavailable(_NO_KEYS) from None
        return S3Store(
            place.bucket, config=config, credential_provider=keys, **_limits(place, limit_s)
        )
    config["access_key_id"] = place.access_key.get_secret_value()
    config["secret_access_key"] = place.secret_key.get_secret_value()
    return S3Store(place.bucket, config=config, **_limits(place, limit_s))


def gcs_bucket(place: PayloadConnection, *, limit_s: float = LIMIT_S) -> ObjectStore:
    """Open a bucket of Google Cloud Storage.

    `secret_key` is a service account's key as JSON; without it, the machine's own credentials
    are used.
    """
    config: GCSConfig = {}
    if place.endpoint is not None:
        config["base_url"] = place.endpoint.rstrip("/")
    if place.secret_key is not None:
        config["service_account_key"] = place.secret_key.get_secret_value()
    try:
        return GCSStore(place.bucket, config=config, **_limits(place, limit_s))
    except (BaseError, ValueError) as error:
        raise NoSuchBackend("gcs", str(error)) from error


def azure_container(place: PayloadConnection, *, limit_s: float = LIMIT_S) -> ObjectStore:
    """Open a container of Azure Blob Storage: `access_key` is the account, `secret_key` its key.

    Without a key, the machine's own identity is used.
    """
    if place.access_key is None:
        raise NoSuchBackend(
            "azure-blob", "set payload_store.connection.access_key to the storage account's name"
        )
    config: AzureConfig = {"account_name": place.access_key.get_secret_value()}
    if place.secret_key is not None:
        config["account_key"] = place.secret_key.get_secret_value()
    if place.endpoint is not None:
        config["endpoint"] = place.endpoint.rstrip("/")
    try:
        return AzureStore(place.bucket, config=config, **_limits(place, limit_s))
    except (BaseError, ValueError) as error:
        raise NoSuchBackend("azure-blob", str(error)) from error


class _Limits(TypedDict):
    client_options: ClientConfig
    retry_config: RetryConfig


def _limits(place: PayloadConnection, limit_s: float) -> _Limits:
    """Bound requests; start no retry after half the time: one that timed out is not repeated."""
    retries: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=limit_s / 2)}
    return {"client_options": _client(place, limit_s), "retry_config": retries}


def _client(place: PayloadConnection, limit_s: float) -> ClientConfig:
    """Set timeouts; use plain HTTP only if the endpoint does."""
    bounds: ClientConfig = {
        "timeout": timedelta(seconds=limit_s),
        "connect_timeout": timedelta(seconds=min(_CONNECT_S, limit_s)),
    }
    if place.endpoint is not None and place.endpoint.startswith("http://"):
        bounds["allow_http"] = True
    return bounds
