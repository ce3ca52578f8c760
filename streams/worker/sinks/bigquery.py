"""Tables in BigQuery, by its own client: every write is a job with a name of its own.

A job that was made cannot be made again, so an attempt that comes again finds the first one's.
"""

from __future__ import annotations

import asyncio
import json
import re
from datetime import date, datetime
from hashlib import sha256
from typing import Any

from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import Conflict, GoogleAPICallError, RetryError, ServerError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud import bigquery
from google.oauth2 import service_account

from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.sinks.clients import Clients
from streams.worker.sinks.port import Around, Job, Reference, SinkRefused
from streams.worker.sinks.tables import Rows, merge, reference, table_rows, text_of_json
from streams.worker.tools.pg_statement import statements

TRIES = 5
"""How often a job that failed gets another name, and with it another chance."""
_KINDS = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL"}
"""What the API calls a column's type -> what a parameter calls it."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")


class BigqueryDriver:
    """Appends and overwrites by load jobs, upserts and updates by MERGE, statements as queries."""

    def __init__(self, around: Around) -> None:
        self._clients = Clients[Any](_close)

    async def write(self, job: Job) -> Reference:
        """Write the rows, or run the statement, and wait until that is done."""
        rows = None if job.statement is not None else table_rows(job)
        try:
            async with self._clients.use(_login(job), lambda: _opened(job)) as client:
                await asyncio.to_thread(_write, client, job, rows)
        except (ServerError, RetryError, TransportError, ConnectionError) as error:
            raise TargetUnavailable(f"bigquery: {error}; it is asked again") from error
        except GoogleAPICallError as error:
            raise SinkRefused(str(error.code or "refused"), str(error.message)) from error
        except GoogleAuthError as error:
            raise SinkRefused("auth", str(error)) from error
        return reference(job, rows)

    async def close(self) -> None:
        """Close the clients."""
        await self._clients.close()


async def _close(client: Any) -> None:
    client.close()


def _login(job: Job) -> tuple[str | None, ...]:
    """Return what a client is made of: project, endpoint, location and the account's key."""
    key = job.setting("service_account_key", "service_account", "credentials_json")
    return (*(job.setting(name) for name in ("project", "endpoint", "location")), key)


def _opened(job: Job) -> Any:
    project, endpoint, location, key = _login(job)
    if project is None:
        raise BadConfig("a bigquery sink needs a project, in `spec` or in its credential")
    login: Any = None
    if key is not None:
        login = _account(key)
    elif endpoint is not None:
        login = AnonymousCredentials()  # type: ignore[no-untyped-call]
    options = ClientOptions(api_endpoint=endpoint) if endpoint else None
    return bigquery.Client(
        project=project, credentials=login, client_options=options, location=location
    )


def _account(key: str) -> Any:
    read: Any = service_account.Credentials.from_service_account_info
    try:
        return read(json.loads(key))
    except ValueError:
        # Without the parser's words: they would show a piece of the secret.
        raise BadConfig("the service account's key cannot be read") from None


def _write(client: Any, job: Job, rows: Rows | None) -> None:
    digest = sha256(f"{job.deployment}/{job.name}".encode()).hexdigest()[:20]
    name = f"noetl-{_NO_NAME.sub('_', job.call.step)[:60]}-{digest}"
    for number in range(TRIES):
        job_id = name if number == 0 else f"{name}-{number}"
        try:
            made = _begin(client, job, rows, job_id)
        except Conflict:
            made = client.get_job(job_id)
            if made.error_result and number < TRIES - 1:
                continue
        if made is not None:
            made.result()
        return


def _begin(client: Any, job: Job, rows: Rows | None, job_id: str) -> Any:
    if rows is None:
        [command] = statements(job.statement or "")
        names = command.parameters
        if absent := [name for name in names if name not in job.params]:
            raise BadConfig(f"no value for the placeholder :{absent[0]} in 'params'")
        params = [_parameter(name, job.params[name]) for name in names]
        return _query(client, command.sql([f"@{name}" for name in names]), params, job_id)
    table = _table(job, client.project)
    schema = client.get_table(table).schema
    if job.mode in ("append", "overwrite"):
        how = "WRITE_APPEND" if job.mode == "append" else "WRITE_TRUNCATE"
        config = bigquery.LoadJobConfig(
            write_disposition=how,
            create_disposition="CREATE_NEVER",
            schema=schema,
        )
        loaded = [{k: _loadable(v) for k, v in row.items()} for row in rows.rows]
        return client.load_table_from_json(loaded, table, job_id=job_id, job_config=config)
    if not rows.rows:
        return None
    selects, params = [], []
    fields = [_field(schema, table, name) for name in rows.columns]
    for place, row in enumerate(rows.rows):
        of = {name: f"p{place}_{n}" for n, name in enumerate(rows.columns)}
        selects.append("SELECT " + ", ".join(f"@{of[c]} AS {_quote(c)}" for c in rows.columns))
        params += [
            _of_column(of[name], field, row.get(name))
            for name, field in zip(rows.columns, fields, strict=True)
        ]
    into = Rows(_quote(table), rows.columns, rows.rows)
    source = " UNION ALL ".join(selects)
    sql = merge(into, job.key, source, _quote, inserts=job.mode == "upsert")
    return _query(client, sql, params, job_id)


def _query(client: Any, sql: str, params: list[Any], job_id: str) -> Any:
    config = bigquery.QueryJobConfig(query_parameters=params)
    return client.query(sql, job_id=job_id, job_config=config, job_retry=None)


def _parameter(name: str, value: Any) -> Any:
    kinds = ((bool, "BOOL"), (int, "INT64"), (float, "FLOAT64"), (datetime, "TIMESTAMP"))
    kind = next((known for cls, known in (*kinds, (date, "DATE")) if isinstance(value, cls)), "")
    return bigquery.ScalarQueryParameter(name, kind or "STRING", text_of_json(value))


def _field(schema: Any, table: str, name: str) -> Any:
    """Return the table's column of this name, which may be written in any case."""
    known = {field.name.lower(): field for field in schema}
    if (found := known.get(name.lower())) is None:
        there = ", ".join(field.name for field in schema)
        raise BadConfig(f"{table} has no column {name!r}; there are {there}")
    if found.field_type in ("RECORD", "STRUCT"):
        raise BadConfig(
            f"column {name!r} is a RECORD: use mode append or overwrite, or a statement"
        )
    return found


def _of_column(name: str, field: Any, value: Any) -> Any:
    """Bind a value as its column's type: a NULL, or a number for a NUMERIC, has no other."""
    kind = _KINDS.get(field.field_type, field.field_type)
    if field.mode == "REPEATED":
        if not isinstance(value, (list, type(None))):
            raise BadConfig(f"column {field.name!r} is REPEATED and takes a list")
        return bigquery.ArrayQueryParameter(name, kind, [_bound(kind, one) for one in value or ()])
    return bigquery.ScalarQueryParameter(name, kind, _bound(kind, value))


def _bound(kind: str, value: Any) -> Any:
    if kind == "STRING" and isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return value if kind == "JSON" else text_of_json(value)


def _loadable(value: Any) -> Any:
    is_json = value is None or isinstance(value, (str, int, float, bool, dict, list))
    return value if is_json else str(value)


def _table(job: Job, project: str) -> str:
    parts = str(job.table).split(".")
    dataset = job.setting("dataset")
    if len(parts) == 1:
        if dataset is None:
            raise BadConfig(f"table {job.table!r} needs a dataset: dataset.table, or in `spec`")
        parts = [dataset, *parts]
    return ".".join(parts if len(parts) > 2 else [project, *parts])


def _quote(name: str) -> str:
    if "`" in name or "\\" in name:
        raise BadConfig(f"{name!r} is no name in BigQuery")
    return f"`{name}`"
