"""What a bench needs as an author: a database for its tables, a place in the catalog."""

from __future__ import annotations

from streams.app import catalog_of, open_log
from streams.errors import Refused
from streams.payload.port import Scope
from streams.settings import Settings

CREDENTIAL = "pg_local"


class NoDatabase(Refused):
    """There is no database for an author's tables."""

    def __init__(self) -> None:
        super().__init__(
            f"credentials.{CREDENTIAL}.dsn is not set: the playbook needs a database for its "
            "tables; the embedded stack brings one, else name it in the configuration"
        )


def author_dsn(settings: Settings) -> str:
    """Return where the playbook's tables go.

    Raises:
        NoDatabase: the settings name none.
    """
    fields = settings.credentials.get(CREDENTIAL, {})
    if "dsn" not in fields:
        raise NoDatabase
    return str(fields["dsn"].get_secret_value())


async def register(settings: Settings, text: str) -> None:
    """Put a playbook into the catalog; the same text twice is one version."""
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with open_log(settings, role="bench", lanes=1) as log:
        await catalog_of(log).register(scope, text)
