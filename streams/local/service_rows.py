"""Progress rows of a starting stack's services."""

from __future__ import annotations

from rich.spinner import Spinner
from rich.text import Text

from streams.local.display import Display, DisplayRow
from streams.local.service import ServiceReport, ServiceState

_SETTLED = (ServiceState.READY, ServiceState.STOPPED, ServiceState.FAILED)


class ServiceRows:
    """Shows the last report of each service on a display."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._rows: dict[str, DisplayRow] = {}

    def report(self, report: ServiceReport) -> None:
        """Show a change of one service."""
        self._rows[report.service] = _row(report)
        self._display.show(list(self._rows.values()))


def _row(report: ServiceReport) -> DisplayRow:
    name, state, detail = report.service, report.state, report.detail
    text = f"{state} ({detail})" if detail else str(state)
    mark = Text("✗" if state is ServiceState.FAILED else "✓")
    return DisplayRow(
        name,
        "" if state is ServiceState.WAITING else text,
        (mark if state in _SETTLED else Spinner("dots"), name, str(state), detail),
    )
