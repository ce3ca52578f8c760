"""Requests and answers of NoETL's spelling, in the keys and shapes of its own HTTP tool."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Config, Outcome
from streams.worker.tools.http.query import pairs
from streams.worker.tools.task_config import mapping

FORM = "application/x-www-form-urlencoded"
_BODIES = ("json", "payload", "data", "body", "form")
_PARTS = frozenset(("query", "body"))
_KINDS: Mapping[int, str] = {401: "auth", 403: "auth", 404: "not_found", 429: "rate_limit"}
_RETRYABLE = frozenset(("connection", "timeout"))


def as_request(config: Config) -> Config:
    """Return the task in the keys of the specification's spelling.

    Raises:
        BadConfig: more than one body is given.
    """
    method = str(config.get("method") or "").upper()
    given = {name: config[name] for name in _BODIES if config.get(name) is not None}
    params = dict(mapping(config, "params"))
    data = given.get("data")
    if isinstance(data, dict):
        query = _query_of(data, method)
        params |= query
        if query is data or not data:
            del given["data"]
        elif data.keys() <= _PARTS:
            given |= {"data": data.get("body")}
    headers: dict[str, Json] = {
        name: one for name, one in mapping(config, "headers").items() if one is not None
    }
    made: dict[str, Json] = {n: one for n, one in config.items() if n not in _BODIES}
    made |= {"params": params, "headers": headers, **_body(given, headers)}
    if "timeout" not in config and config.get("timeout_seconds") is not None:
        made["timeout"] = config["timeout_seconds"]
    return made


def _query_of(data: dict[str, Json], method: str) -> dict[str, Json]:
    """Return what of `data` belongs to the query: its part, or all of it without a body."""
    if data and data.keys() <= _PARTS:
        query = data.get("query")
        if query is not None and not isinstance(query, dict):
            raise BadConfig("'data.query' must be a mapping")
        return query or {}
    return data if method in ("", "GET", "DELETE") else {}


def _body(given: Mapping[str, Json], headers: dict[str, Json]) -> dict[str, Json]:
    """Return the body as `json` or as text; a form adds its content type to `headers`."""
    bodies = {name: one for name, one in given.items() if one is not None}
    if len(bodies) > 1:
        raise BadConfig(f"{' and '.join(map(repr, bodies))} are given; give one body only")
    for name, value in bodies.items():
        if name != "json" and isinstance(value, str):
            return {"body": value}
        if isinstance(value, Mapping) and (
            name == "form" or (name != "json" and _is_form(headers))
        ):
            if not _is_form(headers):
                headers["Content-Type"] = FORM
            return {"body": urlencode(pairs(value))}
        return {"json": value}
    return {}


def _is_form(headers: Mapping[str, Json]) -> bool:
    kinds = (str(one) for name, one in headers.items() if name.lower() == "content-type")
    return any(kind.lower().startswith(FORM) for kind in kinds)


def answered(outcome: Outcome, *, url: str, elapsed_s: float) -> Outcome:
    """Return the outcome of an answer in NoETL's shape; a status of 400 or more is an error."""
    http = outcome.detail["http"]
    assert isinstance(http, dict)
    status = http["status"]
    assert isinstance(status, int)
    body = outcome.data
    data: dict[str, Json] = {"status_code": status, "headers": http["headers"], "url": url}
    data |= {"elapsed": round(elapsed_s, 6), "data": body, "body": body}
    if outcome.error is None:
        return Outcome(status="success", data=data, meta=outcome.meta, detail=outcome.detail)
    kind = _KINDS.get(status, "client_error" if status < 500 else "server_error")
    problem: dict[str, Json] = {**outcome.error, "kind": kind, "code": status}
    problem |= {"retryable": status == 429 or status >= 500}
    problem |= {"status_code": status, "status": status}
    return Outcome(
        status="error", data=data, meta=outcome.meta, error=problem, detail=outcome.detail
    )


def unanswered(outcome: Outcome) -> Outcome:
    """Return the outcome of a request without an answer in NoETL's shape."""
    assert outcome.error is not None
    kind = str(outcome.error["kind"]).removeprefix("http.")
    problem: dict[str, Json] = {**outcome.error, "kind": kind, "retryable": kind in _RETRYABLE}
    return Outcome(status="error", error={**problem, "code": kind}, detail=outcome.detail)
