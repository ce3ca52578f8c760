"""Errors of Kafka Connect and of its connectors."""

from __future__ import annotations

from collections.abc import Mapping

from streams.errors import Refused, Unavailable


class ConnectUnavailable(Unavailable):
    """Connect does not respond, or cannot serve the request now."""


class ConnectRefused(Refused):
    """Connect rejects the request; the message is Connect's own."""


class ConnectorUnknown(ConnectRefused):
    """There is no connector of this name."""


class BadConnector(ConnectRefused):
    """The configuration is invalid; `problems` has Connect's message for each field."""

    def __init__(self, name: str, problems: Mapping[str, str]) -> None:
        found = "; ".join(f"{field}: {problem}" for field, problem in problems.items())
        super().__init__(f"connector {name} is not valid: {found}")
        self.problems = dict(problems)


class ConnectorFailed(Unavailable):
    """A connector or its task failed; the message has the cause from its trace."""
