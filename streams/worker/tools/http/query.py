"""Pairs of names and texts, as queries and forms have them."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from streams.events.model import Json


def pairs(values: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Return the pairs of a mapping: lists repeat their name, null omits it."""
    found: list[tuple[str, str]] = []
    for name, value in values.items():
        for one in value if isinstance(value, list) else (value,):
            if one is not None:
                found.append((name, _plain(one)))
    return found


def _plain(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping | list):
        return orjson.dumps(value).decode()
    return str(value)
