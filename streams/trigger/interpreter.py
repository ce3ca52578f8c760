"""The interpreter port: which executions records ask for; and that of the trigger topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streams.errors import PoisonRecord
from streams.events.model import Json
from streams.kafka.feed.port import Record
from streams.payload.port import Scope
from streams.trigger.record import BadTrigger, Request, understand


@dataclass(frozen=True, slots=True)
class Asked:
    """Records that ask for one execution; or one record and why it cannot."""

    records: tuple[Record, ...]
    request: Request | PoisonRecord


class Interpreter(Protocol):
    """Reads what records ask for."""

    async def interpret(self, records: Sequence[Record]) -> Sequence[Asked]:
        """Return the executions that the records ask for; each record is in one of them.

        Raises:
            Unavailable: a dependency is down; retrying is safe.
        """
        ...


class ValueReader(Protocol):
    """Reads the fields of a trigger record's value, in any format."""

    async def fields(self, value: bytes | None) -> dict[str, Json]:
        """Return the fields.

        Raises:
            ValueError: the value is not a trigger record; the message says why.
            Unavailable: the schema registry cannot be reached.
        """
        ...


class TriggerRecords:
    """Interprets records of the trigger topic; `scope` is the owner of those that name none."""

    def __init__(self, reader: ValueReader, scope: Scope) -> None:
        self._reader, self._scope = reader, scope

    async def interpret(self, records: Sequence[Record]) -> Sequence[Asked]:
        """Return one request for each record."""
        return [Asked((record,), await self._request(record)) for record in records]

    async def _request(self, record: Record) -> Request | BadTrigger:
        tenant, organization = self._scope.tenant_id, self._scope.organization_id
        try:
            fields = await self._reader.fields(record.value)
            return understand(record, fields, tenant=tenant, organization=organization)
        except BadTrigger as error:
            return error
        except ValueError as error:
            return BadTrigger((str(error),), tenant=tenant, organization=organization)
