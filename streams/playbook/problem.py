"""Problems of a playbook, with their places."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a problem is: an error is never registered, a warning is likely a mistake."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One problem. Lines and columns count from 1."""

    line: int
    column: int
    where: str
    """A readable path: workflow[2].tool.url"""
    message: str
    hint: str | None = None
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.line}:{self.column}: {self.severity}: {where}{self.message}{hint}"
