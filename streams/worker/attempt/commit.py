"""Outcome of a frame, as committed and as stored in the fence."""

from __future__ import annotations

from dataclasses import dataclass

from streams.events.reading import bool_of, fields_of, int_of, object_of, objects_of
from streams.execution.attempts import FrameReport
from streams.payload.content import reference_from, reference_json
from streams.worker.port import Saved

_RESULT = ("retries", "saved", "exhausted", "errors", "ctx", "ctx_elsewhere", "vars")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The outcome of a frame, or of its rows up to a checkpoint.

    Its cursor is where a continuation begins.
    """

    report: FrameReport
    continues: bool = False
    is_checkpoint: bool = False
    """More rows of the same frame follow."""

    def saved(self) -> Saved:
        """Return the outcome as a fence stores it, for a later attempt to commit."""
        report = self.report
        result = {name: getattr(report, name) for name in _RESULT}
        output = {
            "ref": None if report.payload_ref is None else reference_json(report.payload_ref),
            "failed_rows": report.failed_rows,
            # A worker that knows no checkpoints continues in another frame.
            "continues": self.continues or self.is_checkpoint,
            "checkpoint": self.is_checkpoint,
            "result": {name: value for name, value in result.items() if value is not None},
        }
        return Saved(row_count=report.rows, cursor=dict(report.cursor or {}), output=output)


def adopt(saved: Saved) -> Commit:
    """Return the commit that an earlier attempt saved but did not append."""
    output = saved.output or {}
    result = fields_of(output.get("result"))
    ref = output.get("ref")
    report = FrameReport(
        rows=saved.row_count,
        failed_rows=int(output.get("failed_rows", 0)),
        cursor=dict(saved.cursor or {}),
        retries=int_of(result.get("retries")),
        saved=object_of(result.get("saved")),
        exhausted=bool_of(result.get("exhausted")),
        errors=objects_of(result.get("errors")),
        ctx=object_of(result.get("ctx")),
        ctx_elsewhere=objects_of(result.get("ctx_elsewhere")),
        vars=object_of(result.get("vars")),
        payload_ref=None if ref is None else reference_from(ref),
    )
    is_checkpoint = bool(output.get("checkpoint"))
    continues = bool(output.get("continues")) and not is_checkpoint
    return Commit(report=report, continues=continues, is_checkpoint=is_checkpoint)
