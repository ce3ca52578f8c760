"""Setup of a bench's playbook: database and registration."""

from __future__ import annotations

from streams.app import catalog_of, open_log
from streams.errors import Refused
from streams.payload.port import Scope
from streams.settings import Settings

CREDENTIAL = "pg_local"


class NoDatabase(Refused):
    """No database for the playbook's tables is configured."""

    def __init__(self) -> None:
        super().__init__(
            f"credentials.{CREDENTIAL}.dsn is not set: the playbook needs a database for its "
            "tables; use the embedded stack's, or configure one"
        )


def author_dsn(settings: Settings) -> str:
    """Return the DSN of the playbook's database.

    Raises:
        NoDatabase: none is configured.
    """
    fields = settings.credentials.get(CREDENTIAL, {})
    if "dsn" not in fields:
        raise NoDatabase
    return str(fields["dsn"].get_secret_value())


async def register(settings: Settings, text: str) -> None:
    """Register a playbook; unchanged text is one version."""
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_log(settings, role="bench", lanes=1) as log:
        await catalog_of(log).register(scope, text)
