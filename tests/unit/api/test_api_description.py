"""The published description says what the server does, and nothing else."""

from __future__ import annotations

from typing import Any, cast

from aiohttp import web

from streams.api.openapi import describe, plain_path
from streams.api.routes import ROUTES
from streams.api.runtime import ApiRuntime
from streams.api.server import make_app

DESCRIBED = describe(ROUTES, version="1")
UNDESCRIBED = {("GET", "/openapi.json"), ("GET", "/healthz")}


def served() -> set[tuple[str, str]]:
    app = make_app(cast(ApiRuntime, None))
    routes = [one for one in app.router.routes() if one.method != "HEAD"]
    return {(one.method, plain_path(_path(one.resource))) for one in routes}


def _path(resource: web.AbstractResource | None) -> str:
    assert resource is not None
    return resource.canonical


def test_every_route_is_described_and_every_description_is_served() -> None:
    described = {
        (method.upper(), path) for path, item in DESCRIBED["paths"].items() for method in item
    }
    assert described == served() - UNDESCRIBED


def test_every_reference_leads_to_a_schema() -> None:
    names = set(DESCRIBED["components"]["schemas"])
    assert {one.rpartition("/")[2] for one in references(DESCRIBED)} <= names


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        found = [node["$ref"]] if "$ref" in node else []
        return found + [ref for value in node.values() for ref in references(value)]
    return [ref for value in node for ref in references(value)] if isinstance(node, list) else []


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [one["operationId"] for item in DESCRIBED["paths"].values() for one in item.values()]
    assert len(names) == len(set(names))
