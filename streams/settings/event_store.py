"""Settings of the event log (Postgres) and its distribution (Kafka)."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote, urlencode

from pydantic import field_validator

from streams.settings.fields import Port, Positive, Secret, Section, Text

TOPICS = "noetl.events"
"""Prefix of the event topics; topics/*.yaml declares them."""
Duty = Literal["owner", "append", "read", "mirror", "project", "collect"]
_WHOLE_LOG: tuple[Duty, ...] = ("append", "mirror", "collect")
"""Duties that read the log of all tenants: a row hidden by row security must be an error."""


class Login(Section):
    """The database user of one duty."""

    user: Text
    password: Secret = Secret("")


class Roles(Section):
    """One database user per duty, each with the privileges of that duty."""

    owner: Login = Login(user="noetl_owner")
    append: Login = Login(user="noetl_append")
    read: Login = Login(user="noetl_read")
    mirror: Login = Login(user="noetl_mirror")
    project: Login = Login(user="noetl_project")
    collect: Login = Login(user="noetl_collect")


class CanonicalConnection(Section):
    """The Postgres database of the log."""

    host: Text = "127.0.0.1"
    port: Port = 5432
    database: Text = "noetl"
    ssl_mode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = (
        "prefer"
    )
    roles: Roles = Roles()

    def login(self, duty: Duty) -> Login:
        """Return the login of `duty`."""
        login: Login = getattr(self.roles, duty)
        return login

    def dsn(self, duty: Duty) -> str:
        """Build the connection string of `duty`; it contains the password, so never log it."""
        login = self.login(duty)
        password = login.password.get_secret_value()
        who = quote(login.user, safe="") + (f":{quote(password, safe='')}" if password else "")
        query: dict[str, str] = {"sslmode": self.ssl_mode}
        if duty in _WHOLE_LOG:
            query["options"] = "-c row_security=off"
        if self.host.startswith("/"):  # a folder of Unix sockets goes into the query
            query = {"host": self.host, "port": str(self.port), **query}
            where = ""
        else:
            host = f"[{self.host}]" if ":" in self.host else self.host
            where = f"{host}:{self.port}"
        database, options = quote(self.database, safe=""), urlencode(query, quote_via=quote)
        return f"postgresql://{who}@{where}/{database}?{options}"


class DistributionConnection(Section):
    """The stream that distributes events; for Kafka, `url` lists the bootstrap servers."""

    url: Text = "127.0.0.1:9092"
    stream_prefix: Text = TOPICS

    @field_validator("stream_prefix")
    @classmethod
    def _is_what_topics_are_called(cls, value: str) -> str:
        if value != TOPICS:
            raise ValueError(
                f"must be {TOPICS!r}, not {value!r}: topics have fixed names in this version; "
                "give each deployment its own Kafka"
            )
        return value


class ReplaySettings(Section):
    """Replay of the log and its comparison with live projections."""

    snapshot_interval_events: Positive = 10_000
    checksum_algorithm: Literal["blake3"] = "blake3"
    require_projection_parity: bool = True


class EventStoreSettings(Section):
    """The canonical log and its distribution."""

    canonical_backend: Literal["postgres"] = "postgres"
    canonical_connection: CanonicalConnection = CanonicalConnection()
    distribution_backend: Literal[
        "kafka",
        "nats-jetstream",
        "google-pubsub",
        "azure-event-hubs",
        "aws-kinesis",
        "aws-msk",
    ] = "kafka"
    connection: DistributionConnection = DistributionConnection()
    replay: ReplaySettings = ReplaySettings()

    @field_validator("distribution_backend")
    @classmethod
    def _is_built(cls, value: str) -> str:
        if value != "kafka":
            raise ValueError(f"'{value}' is not available in this version; use kafka")
        return value
