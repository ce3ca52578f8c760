"""BigQuery tables: every write is a job whose name derives from the write.

BigQuery rejects a second job of the same name, so a retried attempt finds the first one's job.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Protocol, TypeAlias

from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import Conflict, GoogleAPICallError, RetryError, ServerError
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud import bigquery
from google.oauth2 import service_account

from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.bigquery_values import (
    Parameter,
    column_parameter,
    field_of,
    loadable,
    scalar_parameter,
)
from streams.worker.sinks.clients import Clients
from streams.worker.sinks.port import SinkEnvironment, SinkJob, SinkReference, SinkRefused
from streams.worker.sinks.tables import (
    TableRows,
    groups,
    last_of_key,
    merge,
    reference,
    table_rows,
)
from streams.worker.tools.postgres.statement import statements

MOST_PARAMETERS = 10_000
"""BigQuery's limit for one query."""
TRIES = 5
"""How often a failed job is retried under another name."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")


class _StartedJob(Protocol):
    """A BigQuery job."""

    @property
    def error_result(self) -> Mapping[str, object] | None: ...
    def result(self) -> object: ...


_Begin: TypeAlias = Callable[[str], _StartedJob]
"""Starts a job under the given name."""


class BigqueryDriver:
    """Appends and overwrites by load jobs, upserts and updates by MERGE, statements as queries."""

    def __init__(self, around: SinkEnvironment) -> None:
        self._clients = Clients[bigquery.Client](_close)

    async def write(self, job: SinkJob) -> SinkReference:
        """Write the rows or run the statement, and wait for it."""
        rows = None if job.statement is not None else table_rows(job)
        try:
            async with self._clients.use(_login(job), lambda: _opened(job)) as client:
                await asyncio.to_thread(_write, client, job, rows)
        except (ServerError, RetryError, TransportError, ConnectionError) as error:
            raise TargetUnavailable(f"bigquery: {error}; retrying") from error
        except GoogleAPICallError as error:
            raise SinkRefused(str(error.code or "refused"), str(error.message)) from error
        except GoogleAuthError as error:
            raise SinkRefused("auth", str(error)) from error
        return reference(job, rows)

    async def close(self) -> None:
        """Close the clients."""
        await self._clients.close()


async def _close(client: bigquery.Client) -> None:
    client.close()  # type: ignore[no-untyped-call]


def _login(job: SinkJob) -> tuple[str | None, ...]:
    """Return project, endpoint, location and the account's key."""
    key = job.setting("service_account_key", "service_account", "credentials_json")
    return (*(job.setting(name) for name in ("project", "endpoint", "location")), key)


def _opened(job: SinkJob) -> bigquery.Client:
    project, endpoint, location, key = _login(job)
    if project is None:
        raise BadConfig("a bigquery sink needs a project, in `spec` or in its credential")
    login: Credentials | None = None
    if key is not None:
        login = _account(key)
    elif endpoint is not None:
        login = AnonymousCredentials()  # type: ignore[no-untyped-call]
    options = ClientOptions(api_endpoint=endpoint) if endpoint else None
    return bigquery.Client(
        project=project, credentials=login, client_options=options, location=location
    )


def _account(key: str) -> Credentials:
    read = service_account.Credentials.from_service_account_info
    try:
        found: Credentials = read(json.loads(key))  # type: ignore[no-untyped-call]
        return found
    except ValueError:
        # The parser's message would show a part of the secret.
        raise BadConfig("the service account's key cannot be read") from None


def _write(client: bigquery.Client, job: SinkJob, rows: TableRows | None) -> None:
    digest = sha256(f"{job.deployment}/{job.name}".encode()).hexdigest()[:20]
    name = f"noetl-{_NO_NAME.sub('_', job.call.step)[:60]}-{digest}"
    for place, begin in enumerate(_jobs(client, job, rows)):
        _once(client, f"{name}-part{place}" if place else name, begin)


def _once(client: bigquery.Client, name: str, begin: _Begin) -> None:
    """Run a job unless an earlier attempt has run it, and wait for it."""
    for number in range(TRIES):
        job_id = name if number == 0 else f"{name}-{number}"
        try:
            made = begin(job_id)
        except Conflict:
            made = client.get_job(job_id)
            if made.error_result and number < TRIES - 1:
                continue
        made.result()
        return


def _jobs(client: bigquery.Client, job: SinkJob, rows: TableRows | None) -> Iterator[_Begin]:
    """Yield the jobs of a write, each as a function that starts it under a name."""
    if rows is None:
        yield partial(_query, client, *_command(job))
        return
    table = _table(job, client.project)
    schema = client.get_table(table).schema
    if job.mode in ("append", "overwrite"):
        how = "WRITE_APPEND" if job.mode == "append" else "WRITE_TRUNCATE"
        config = bigquery.LoadJobConfig(
            write_disposition=how,
            create_disposition="CREATE_NEVER",
            schema=schema,
        )
        known = {field.name.lower(): field for field in schema}
        loaded = [
            {k: loadable(v, known.get(k.lower())) for k, v in row.items()} for row in rows.rows
        ]
        yield lambda name: client.load_table_from_json(
            loaded, table, job_id=name, job_config=config
        )
        return
    for some in groups(job, rows):
        fields = [field_of(schema, table, name) for name in some.columns]
        last, size = last_of_key(some.rows, job.key), max(1, MOST_PARAMETERS // len(fields))
        for begin in range(0, len(last), size):
            part = TableRows(_quote(table), some.columns, last[begin : begin + size])
            yield partial(_query, client, *_merge(job, part, fields))


def _command(job: SinkJob) -> tuple[str, list[Parameter]]:
    commands = statements(job.statement or "")
    if len(commands) != 1:
        raise BadConfig(f"a bigquery sink takes one statement, not {len(commands)}")
    names = commands[0].parameters
    if absent := [name for name in names if name not in job.params]:
        raise BadConfig(f"no value for the placeholder :{absent[0]} in 'params'")
    params = [scalar_parameter(name, job.params[name]) for name in names]
    return commands[0].sql([f"@{name}" for name in names]), params


def _merge(
    job: SinkJob, rows: TableRows, fields: Sequence[bigquery.SchemaField]
) -> tuple[str, list[Parameter]]:
    selects, params = [], []
    for place, row in enumerate(rows.rows):
        of = {name: f"p{place}_{n}" for n, name in enumerate(rows.columns)}
        selects.append("SELECT " + ", ".join(f"@{of[c]} AS {_quote(c)}" for c in rows.columns))
        params += [
            column_parameter(of[name], field, row.get(name))
            for name, field in zip(rows.columns, fields, strict=True)
        ]
    source = " UNION ALL ".join(selects)
    return merge(rows, job.key, source, _quote, inserts=job.mode == "upsert"), params


def _query(client: bigquery.Client, sql: str, params: list[Parameter], job_id: str) -> _StartedJob:
    config = bigquery.QueryJobConfig(query_parameters=params)
    return client.query(sql, job_id=job_id, job_config=config, job_retry=None)


def _table(job: SinkJob, project: str) -> str:
    parts = str(job.table).split(".")
    dataset = job.setting("dataset")
    if len(parts) == 1:
        if dataset is None:
            raise BadConfig(f"table {job.table!r} needs a dataset: dataset.table, or in `spec`")
        parts = [dataset, *parts]
    return ".".join(parts if len(parts) > 2 else [project, *parts])


def _quote(name: str) -> str:
    if "`" in name or "\\" in name:
        raise BadConfig(f"{name!r} is not a valid name in BigQuery")
    return f"`{name}`"
