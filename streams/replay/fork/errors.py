"""Errors of forks.

Refused
├── NothingToFork  the execution had completed there
├── BadOverride    a value that is set does not exist there, or is too large
└── WouldRepeat    the fork would repeat side effects, and that was not allowed
"""

from __future__ import annotations

from streams.errors import Refused


class NothingToFork(Refused):
    """The execution had completed at the position: nothing would run."""


class BadOverride(Refused):
    """A value that is set does not exist in the state, or is too large for an event."""


class WouldRepeat(Refused):
    """The fork would repeat side effects, and the request does not allow that."""
