"""What tests of the postgres tool send, and what comes back."""

from __future__ import annotations

from typing import Any

from streams.worker.port import Config, Outcome

STRINGS = ["12345", "1e5", "None", "true", "", "null", "\\N", "a\tb\nc\\d\re", "it's", 'q"', "é☃"]

INSERT = "INSERT INTO t (id, v) VALUES (:id, :v)"

UPSERT = INSERT + " ON CONFLICT (id) DO UPDATE SET v = excluded.v"


def sql(command: str, **more: Any) -> Config:
    return {"auth": "pg", "command": command, **more}


def rows(outcome: Outcome) -> Any:
    assert outcome.status == "success", outcome.error
    data: Any = outcome.data
    return data["rows"]


def calls(*values: tuple[Any, Any], command: str = INSERT) -> list[Config]:
    return [sql(command, params={"id": id, "v": v}) for id, v in values]
