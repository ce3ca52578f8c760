"""A function for expressions, as a package that somebody installed would bring it."""

from __future__ import annotations


def embedding_from(text: str) -> list[int]:
    """Return a vector that tells short texts apart."""
    return [len(text), text.count("l"), text.count("o")]
