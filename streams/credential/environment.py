"""Secrets from environment variables of the API process."""

from __future__ import annotations

from collections.abc import Mapping

from streams.credential.fields import check_name, fields_of
from streams.payload.port import Scope

PREFIX = "NOETL_CREDENTIAL_"
"""Only variables with this prefix can be read: the environment has other secrets, too."""


class EnvironmentProvider:
    """Looks up `env:PG_MAIN` in NOETL_CREDENTIAL_PG_MAIN, for every tenant."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def find(self, scope: Scope, name: str) -> Mapping[str, str] | None:
        """Return the fields in the variable: a JSON object, or a connection string."""
        variable = PREFIX + check_name(name).upper().replace("-", "_").replace(".", "_")
        value = self._environment.get(variable)
        return None if value is None else fields_of(value, "", variable)
