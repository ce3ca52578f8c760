"""Server and login of a nats task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from streams.worker.errors import BadConfig, UnknownCredential
from streams.worker.port import Call, Config, Credentials
from streams.worker.tools.task_config import text

_MISSING = (
    "{name} names a NATS server, and the client package nats-py is not installed: "
    'pip install "noetl-streams[nats]"; without a server, values are stored in the log\'s database'
)


@dataclass(frozen=True, slots=True)
class NatsLogin:
    """Address of a server, and how to log in there."""

    url: str = field(repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


async def find_login(config: Config, credentials: Credentials, call: Call) -> NatsLogin | None:
    """Return the login of a task; None: it names no server.

    Raises:
        BadConfig: nats-py is not installed, or `url` is not text.
    """
    named = config.get("auth") or config.get("credential")
    fields: Mapping[str, str] = {}
    if named is not None:
        try:
            fields = await credentials.find(call.tenant_id, call.organization_id, str(named))
        except UnknownCredential:
            # The log's database needs no credential: such a playbook runs without NATS.
            fields = {}
    url = _first(fields, "nats_url", "url", "dsn")
    where = f"credential {str(named)!r}"
    if url is None and config.get("url") is not None:
        url, where = text(config, "url"), "`url`"
    if url is None:
        return None
    if find_spec("nats") is None:
        raise BadConfig(_MISSING.format(name=where))
    return NatsLogin(
        url=url,
        user=_first(fields, "nats_user", "user", "username"),
        password=_first(fields, "nats_password", "password"),
        token=_first(fields, "nats_token", "token"),
    )


def _first(fields: Mapping[str, str], *names: str) -> str | None:
    return next((fields[name] for name in names if fields.get(name)), None)
