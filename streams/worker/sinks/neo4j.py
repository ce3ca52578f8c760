"""Cypher statements in Neo4j, or any server of its protocol."""

from __future__ import annotations

from neo4j import AsyncDriver, AsyncGraphDatabase
from neo4j.exceptions import (
    ConfigurationError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.clients import Clients
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference, SinkRefused


class Neo4jDriver:
    """Runs the statement in one transaction; values are parameters like `$name`.

    There is no fence: use idempotent statements (MERGE).
    """

    def __init__(self, around: SinkEnvironment) -> None:
        self._drivers = Clients[AsyncDriver](AsyncDriver.close)

    async def write(self, job: SinkJob) -> SinkReference:
        """Run the statement."""
        login = _login(job)
        try:
            async with self._drivers.use(login, lambda: _opened(*login)) as driver:
                found = await driver.execute_query(
                    job.statement or "",
                    parameters_=dict(job.params),
                    database_=job.setting("database"),
                )
        except (ServiceUnavailable, SessionExpired, TransientError) as error:
            raise TargetUnavailable(f"the graph: {error}; retrying") from error
        except Neo4jError as error:
            code = (error.code or "refused").rsplit(".", 1)[-1].lower()
            raise SinkRefused(code, str(error)) from error
        except DriverError as error:
            raise SinkRefused("driver", str(error)) from error
        changes = found.summary.counters
        count = changes.nodes_created + changes.relationships_created + changes.properties_set
        return {"store": "graph", "key": "statement", "range": f"changes:{count}"}

    async def close(self) -> None:
        """Close the connections."""
        await self._drivers.close()


def _login(job: SinkJob) -> tuple[str, str, str]:
    url = job.setting("url", "uri", "dsn")
    if url is None:
        raise BadConfig("a graph sink needs `auth` whose credential has `url`, or spec.url")
    user = job.secret.get("user") or job.secret.get("username") or ""
    return url, user, job.secret.get("password", "")


def _opened(url: str, user: str, password: str) -> AsyncDriver:
    try:
        return AsyncGraphDatabase.driver(
            url,
            auth=(user, password) if user else None,
            connection_timeout=5,
            max_transaction_retry_time=2,
        )
    except ConfigurationError as error:
        raise BadConfig(f"the address of the graph cannot be used: {error}") from error
    except ValueError:
        # The parser's message could show a part of a password.
        raise BadConfig("the address of the graph cannot be used; it is bolt://host:port") from None
