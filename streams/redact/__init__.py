"""Removes secrets from data, errors and log lines."""

from streams.redact.filter import Formatter, InUse, in_use

__all__ = ["Formatter", "InUse", "in_use"]
