"""Wiring of the credential store, its keys and external secret providers."""

from __future__ import annotations

import os
from pathlib import Path

from streams.app.log import Log, producer
from streams.clock import SystemClock
from streams.credential.environment import EnvironmentProvider
from streams.credential.errors import BadCredential
from streams.credential.file import FileProvider
from streams.credential.keys import Keys, keys_from
from streams.credential.port import Provider
from streams.credential.postgres import PostgresCredentials
from streams.credential.subscribed import SubscriptionSecrets
from streams.settings import Settings
from streams.settings.fields import Secret


def credentials_of(log: Log, settings: Settings) -> PostgresCredentials:
    """Return the credential store in the database of a log."""
    return PostgresCredentials(
        log.pool,
        codec=log.codec,
        take_ids=log.ids.take,
        producer=producer(settings, "api"),
        now=SystemClock().now,
    )


def subscription_secrets_of(log: Log, settings: Settings) -> SubscriptionSecrets:
    """Return the resolver of credentials that subscriptions name."""
    store = credentials_of(log, settings)
    return SubscriptionSecrets(store, keys_of(settings), providers_of(settings))


def keys_of(settings: Settings) -> Keys:
    """Return the keys that encrypt credentials."""
    chosen = settings.credential_store
    return keys_from(chosen.key.get_secret_value() if chosen.key else None, chosen.key_file)


def providers_of(settings: Settings) -> dict[str, Provider]:
    """Return the external secret providers in the settings, by the prefix of their names."""
    chosen, found = settings.credential_store.providers, dict[str, Provider]()
    if chosen.environment:
        found["env"] = EnvironmentProvider(os.environ)
    if chosen.file is not None:
        found["file"] = FileProvider(Path(chosen.file.folder))
    if (aws := chosen.aws) is not None:
        # boto3 takes 0.25 s to import, and few deployments need it.
        from streams.credential.aws import AwsProvider

        found["aws"] = AwsProvider(
            region=aws.region,
            endpoint=aws.endpoint,
            prefix=aws.prefix,
            timeout_s=float(aws.timeout_seconds),
        )
    return found


def worker_token_of(settings: Settings) -> str | None:
    """Return the token that workers send to resolve secrets, or None.

    Raises:
        BadCredential: the token file cannot be read.
    """
    chosen = settings.credential_store
    where = "credential_store.worker_token_file"
    return _token(chosen.worker_token, chosen.worker_token_file, where)


def operator_token_of(settings: Settings) -> str | None:
    """Return the token that operators send, or None.

    Raises:
        BadCredential: the token file cannot be read.
    """
    chosen = settings.api
    return _token(chosen.operator_token, chosen.operator_token_file, "api.operator_token_file")


def _token(given: Secret | None, file: str | None, where: str) -> str | None:
    if given is not None:
        return given.get_secret_value() or None
    if file is None:
        return None
    try:
        return Path(file).read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not a text file"
        message = f"{where}: {file} cannot be read ({why}); put the token there"
        raise BadCredential(message) from None
