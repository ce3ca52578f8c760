"""Bodies whose parts contradict each other are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from streams.api.request_bodies import CommitFrame, RenewLease


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"status": "partial", "row_count": 5}, "failed_rows is 0"),
        ({"status": "partial", "row_count": 1, "failed_rows": 2}, "more than row_count"),
    ],
)
def test_a_commit_whose_status_and_counts_disagree_is_refused(body: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        CommitFrame(worker_id="w", **body)


def test_a_commit_with_failed_rows_is_partial() -> None:
    sent = CommitFrame(worker_id="w", status="partial", row_count=5, failed_rows=1)
    assert sent.failed_rows == 1


def test_a_command_has_no_cursor() -> None:
    with pytest.raises(ValidationError, match="cursor"):
        RenewLease.model_validate({"worker_id": "w", "cursor": {}})
