"""Numbers in the path and the query of a request."""

from __future__ import annotations

from aiohttp import web

from streams.api.errors import BadRequest


def number(request: web.Request, name: str, default: int, *, most: int = 2**63 - 1) -> int:
    """Return an integer query parameter.

    Raises:
        BadRequest: it is not a number, or too large.
    """
    text = request.query.get(name, str(default))
    if not _is_number(text) or int(text) > most:
        raise BadRequest((f"{name}: is {text[:40]!r}, not a whole number up to {most}",))
    return int(text)


def id_of(request: web.Request, name: str = "id") -> int:
    """Return the id in the path.

    Raises:
        BadRequest: it is not an id.
    """
    text = request.match_info[name]
    if not _is_number(text) or not 0 < int(text) < 2**63:
        raise BadRequest((f"{text[:40]!r} is not a valid id; ids are whole numbers, sent as text",))
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20
