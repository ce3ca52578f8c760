"""Secrets from the environment of the process that hands them out."""

from __future__ import annotations

from collections.abc import Mapping

from streams.credential.fields import check_name, fields_of
from streams.payload.port import Scope

PREFIX = "NOETL_CREDENTIAL_"
"""Only variables of this name can be asked for: the environment holds other secrets, too."""


class EnvironmentProvider:
    """Finds `env:PG_MAIN` in NOETL_CREDENTIAL_PG_MAIN; it is every tenant's."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def find(self, scope: Scope, name: str) -> Mapping[str, str] | None:
        """Return the fields in the variable: a JSON object, or a connection string."""
        variable = PREFIX + check_name(name).upper().replace("-", "_").replace(".", "_")
        value = self._environment.get(variable)
        return None if value is None else fields_of(value, "", variable)
