"""Credentials from the settings and from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from streams.credential.errors import BadCredential
from streams.credential.fields import check_fields
from streams.events.text import has_surrogate
from streams.worker.errors import BadConfig, UnknownCredential

PREFIX = "NOETL_CREDENTIAL_"


class ConfiguredCredentials:
    """Looks up a credential in `NOETL_CREDENTIAL_<NAME>`, else in the settings.

    The variable holds a connection string, or a JSON object of fields. These credentials
    belong to the deployment: every tenant may use them.
    """

    def __init__(
        self, settings: Mapping[str, Mapping[str, str]], environment: Mapping[str, str]
    ) -> None:
        self._found = {name: dict(fields) for name, fields in settings.items()}
        self._environment = {
            name: value for name, value in environment.items() if name.startswith(PREFIX)
        }

    async def find(self, tenant_id: str, organization_id: str, name: str) -> Mapping[str, str]:
        """Return the credential's fields, for example {"dsn": ...}.

        Raises:
            UnknownCredential: it does not exist.
            BadConfig: the variable cannot be read.
        """
        variable = variable_of(name)
        if (value := self._environment.get(variable)) is not None:
            return _fields(variable, value)
        if (fields := self._found.get(name)) is not None:
            return fields
        raise UnknownCredential(name, list(self._found))


def variable_of(name: str) -> str:
    """Return the environment variable of a credential."""
    return PREFIX + re.sub(r"\W", "_", name).upper()


def _fields(variable: str, value: str) -> Mapping[str, str]:
    if has_surrogate(value):
        raise BadConfig(f"{variable} is not UTF-8")
    if not value.lstrip().startswith("{"):
        return {"dsn": value}
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError:
        # The parser's message would show a part of the secret.
        raise BadConfig(f"{variable} begins like a JSON object but cannot be read as one") from None
    # A boolean, such as `tls`, is accepted as text for compatibility.
    texts = {
        name: str(one).lower() if isinstance(one, bool) else one for name, one in fields.items()
    }
    try:
        return check_fields(texts)
    except BadCredential as error:
        raise BadConfig(f"{variable}: {error}") from error
