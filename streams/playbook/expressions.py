"""Templates: jinja2's immutable sandbox, compiled once, types kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from streams.envelope.model import Json


class Template(Protocol):
    """A compiled value: a constant, an expression, text with expressions in it, or a structure."""

    @property
    def names(self) -> frozenset[str]:
        """The top-level names it mentions."""
        ...

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return its value in `scope`.

        Raises:
            ExpressionFailed: it cannot be rendered, took too long or grew too large.
        """
        ...
