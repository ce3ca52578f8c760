"""Credentials of a trial run: from files given by name, and from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from streams.clock import Clock
from streams.credential.errors import BadCredential
from streams.credential.fields import check_fields
from streams.events.model import Json
from streams.trial.errors import BadTrial
from streams.worker.attempt.secrets import AttemptSecrets, LeasedCredentials
from streams.worker.errors import CredentialRefused
from streams.worker.tools.credentials import ConfiguredCredentials, variable_of

GivenCredentials = Mapping[str, Mapping[str, str]]


def credential_of(name: str, value: Json) -> Mapping[str, str]:
    """Return the fields of a credential: a mapping, or a connection string.

    A file of NoETL's form, with the fields under `data`, is accepted.

    Raises:
        BadTrial: it is neither.
    """
    if isinstance(value, str):
        return {"dsn": value}
    if isinstance(value, dict) and isinstance(inner := value.get("data"), dict):
        value = inner
    if not isinstance(value, dict):
        raise BadTrial(f"credential {name}: give an object of fields, or a connection string")
    texts = {
        key: str(one).lower() if isinstance(one, bool) else str(one) for key, one in value.items()
    }
    try:
        return check_fields(texts)
    except BadCredential as error:
        raise BadTrial(f"credential {name}: {error}") from error


class NoServer:
    """Stands for the store of credentials, which a trial run does not have."""

    async def resolve(self, held: AttemptSecrets, name: str) -> Mapping[str, str]:
        """Refuse.

        Raises:
            CredentialRefused: always.
        """
        why = (
            f"it is not given; add --credential {name}=FILE.json, or set {variable_of(name)} to a "
            "connection string or a JSON object"
        )
        raise CredentialRefused(name, why)


def trial_credentials(given: GivenCredentials, clock: Clock) -> LeasedCredentials:
    """Return the lookup of credentials: the environment's, then those given."""
    return LeasedCredentials(ConfiguredCredentials(given, os.environ), NoServer(), clock)
