"""Keeps secrets out of what is written."""

from streams.redact.filter import Formatter, InUse, in_use

__all__ = ["Formatter", "InUse", "in_use"]
