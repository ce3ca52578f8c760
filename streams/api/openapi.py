"""The OpenAPI 3.1 description, generated from the routes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from pydantic.json_schema import models_json_schema

from streams.api.problems import PROBLEM
from streams.api.request_bodies import Sent
from streams.api.routes import Route
from streams.api.runtime import ORGANIZATION_HEADER, TENANT_HEADER
from streams.events.model import Json

Object: TypeAlias = dict[str, Json]
"""A JSON object of the description."""
_SCHEMAS = "#/components/schemas/"
_PARAMETER = re.compile(r"{(\w+)(?::[^}]*)?}")
_PROBLEM_SCHEMA: Object = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "problems": {"type": "array", "items": {"type": "string"}},
    },
}


def plain_path(path: str) -> str:
    """Return a route's path as OpenAPI writes it."""
    return _PARAMETER.sub(r"{\1}", path)


def describe(routes: Sequence[Route], *, version: str) -> Object:
    """Return the description of `routes`."""
    operations: dict[str, Object] = {}
    for route in routes:
        operations.setdefault(plain_path(route.path), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "NoETL streams",
            "version": version,
            "description": "64-bit ids are strings. Errors are application/problem+json.",
        },
        "paths": {**operations},
        "components": {"schemas": {"Problem": _PROBLEM_SCHEMA, **_bodies(routes)}},
    }


def _operation(route: Route) -> Object:
    module = route.handle.__module__.rpartition(".")[2]
    responses: Object = {str(code): _response(code, text) for code, text in route.answers.items()}
    operation: Object = {
        "summary": route.summary,
        "operationId": f"{module}_{route.handle.__name__}",
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_SCOPE],
        "responses": {**responses, "default": _response(500, "an error")},
    }
    if isinstance(route.body, str):
        operation["requestBody"] = {"required": True, "content": {route.body: {}}}
    elif route.body is not None:
        schema: Json = {"$ref": _SCHEMAS + route.body.__name__}
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def _response(code: int, text: str) -> Object:
    if code < 400:
        return {"description": text}
    return {
        "description": text,
        "content": {PROBLEM: {"schema": {"$ref": _SCHEMAS + "Problem"}}},
    }


def _path_parameters(route: Route) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(route.path)
    ]


def _query_parameters(route: Route) -> list[Json]:
    return [
        {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
        for name, text in route.query.items()
    ]


_SCOPE: list[Json] = [
    {
        "name": name,
        "in": "header",
        "description": "the scope of the request",
        "schema": {"type": "string"},
    }
    for name in (TENANT_HEADER, ORGANIZATION_HEADER)
]


def _bodies(routes: Sequence[Route]) -> Object:
    found = {r.body for r in routes if isinstance(r.body, type) and issubclass(r.body, Sent)}
    kinds = sorted(found, key=lambda one: one.__name__)
    _, schemas = models_json_schema(
        [(kind, "validation") for kind in kinds], ref_template=_SCHEMAS + "{model}"
    )
    defined: Object = schemas.get("$defs", {})
    return defined
