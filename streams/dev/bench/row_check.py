"""Comparison of saved rows with a server's ledger: none missing, none doubled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

import asyncpg

SERVED = "CREATE TEMPORARY TABLE IF NOT EXISTS served (row_key text, value text)"
COMPARE = """
WITH saved AS (
  SELECT row_key, count(*) AS copies, min(value) AS least, max(value) AS most
  FROM {table} GROUP BY row_key
)
SELECT count(served.row_key) AS expected,
       coalesce(sum(copies), 0)::bigint AS saved,
       count(*) FILTER (WHERE saved.row_key IS NULL) AS missing,
       coalesce(sum(copies - 1), 0)::bigint AS doubled,
       count(*) FILTER (WHERE served.row_key IS NULL) AS unasked,
       count(*) FILTER (WHERE least <> served.value OR most <> served.value
                        OR least IS NULL AND saved.row_key IS NOT NULL) AS altered
FROM served FULL JOIN saved USING (row_key)"""


@dataclass(frozen=True, slots=True)
class RowCheck:
    """Differences between saved and served rows."""

    expected: int = 0
    saved: int = 0
    missing: int = 0
    doubled: int = 0
    unasked: int = 0
    """Rows saved but never served."""
    altered: int = 0
    """Rows whose text differs from the served one."""

    def __add__(self, other: RowCheck) -> RowCheck:
        return RowCheck(*(sum(pair) for pair in zip(astuple(self), astuple(other), strict=True)))

    def faults(self, who: str) -> list[str]:
        """Return the faults of the rows that `who` saved."""
        wrong = ("missing", "doubled", "unasked", "altered")
        return [f"{who}: {count} rows {name}" for name in wrong if (count := getattr(self, name))]


async def check_rows(
    connection: asyncpg.Connection, schema: str, served: Mapping[str, Iterable[Sequence[str]]]
) -> RowCheck:
    """Compare each table of `schema` with the served keys and texts."""
    total = RowCheck()
    await connection.execute(SERVED)
    for table, rows in served.items():
        await connection.execute("TRUNCATE served")
        await connection.copy_records_to_table("served", records=[tuple(row) for row in rows])
        found = await connection.fetchrow(COMPARE.format(table=f"{schema}.{table}"))
        assert found is not None
        total += RowCheck(*found)
    return total
