"""Connection strings that are none are refused at once, and not quoted."""

from __future__ import annotations

import pytest

from streams.worker.errors import BadConfig
from streams.worker.tools.pg_pools import _check_dsn


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:c4nary@127.0.0.1:5432/db?sslmode=disable",
        "postgres://127.0.0.1/db",
        "postgresql:///db?host=/tmp/socket",
        "postgresql://u:p%40w@[::1]:5432/db",
        "postgresql://a:5432,b:5433/db",
        "postgresql://[::1],b/db",
        "postgresql://u:a:b@h/db",
        "postgresql://",
    ],
)
def test_what_can_be_used_passes(dsn: str) -> None:
    _check_dsn(dsn)


@pytest.mark.parametrize(
    "dsn", ["c4nary", "host=h password=c4nary", "mysql://c4nary@h", "postgresql://u:c4nary@h:x/db"]
)
def test_what_is_none_is_refused_without_being_quoted(dsn: str) -> None:
    with pytest.raises(BadConfig) as refused:
        _check_dsn(dsn)
    assert "c4nary" not in str(refused.value)
