"""Faust's recovery of tables, in whole fetches of their changelogs."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from faust.tables.recovery import Recovery as FaustRecovery
from faust.types import TP
from mode import Service

from streams.kafka.transport.delivery import FAUST_LOG
from streams.kafka.transport.store import ByteTable

_log = logging.getLogger(__name__)


class Recovery(FaustRecovery):
    """Applies whole fetches of a changelog; ends by position, which passes markers."""

    tables: Any
    logger = FAUST_LOG

    @Service.task
    async def _slurp_changelogs(self) -> None:
        """Do nothing: the consumer calls `accept`."""

    async def _build_highwaters(
        self, consumer: Any, tps: set[TP], destination: Any, title: str
    ) -> None:
        if title != "active":
            await super()._build_highwaters(consumer, tps, destination, title)
            return
        # What the former owner still writes must not come after the end that is read next.
        await self.tables.fence({one.partition for one in tps})
        await self.tables.check_files(tps | self.standby_tps)
        await super()._build_highwaters(consumer, tps, destination, title)
        self.tables.check_offsets(destination)
        for ours, offsets in ((tps, self.active_offsets), (self.standby_tps, self.standby_offsets)):
            for one in ours:
                offset: Any = self.tp_to_table[one].persisted_offset(one)
                offsets[one] = offset

    def _set_recovery_started(self) -> None:
        self.signal_recovery_end.clear()
        self.record_count = 0
        super()._set_recovery_started()

    def _set_recovery_ended(self) -> None:
        if self.in_recovery and self._recovery_started_at is not None:
            took_s, count = time.monotonic() - self._recovery_started_at, self.record_count
            source = "changelog" if count else "disk"
            _log.info("tables recovered from %s: %d records in %.1f s", source, count, took_s)
        super()._set_recovery_ended()

    def accept(self, one: TP, records: Sequence[Any], position: int) -> None:
        """Apply records of a changelog that was read up to `position`."""
        if one in self.active_tps:
            offsets = self.active_offsets
        elif one in self.standby_tps:
            offsets = self.standby_offsets
        else:
            return
        seen = offsets.get(one)
        seen = -1 if seen is None else seen
        if position - 1 > seen:
            new = [(each.key, each.value) for each in records if each.offset > seen]
            table = self.tp_to_table[one]
            assert isinstance(table, ByteTable)
            table.data.apply(one.partition, new, position - 1)
            offsets[one] = position - 1
            self.record_count += len(new)
        if self.in_recovery and not self.need_recovery():
            self._set_recovery_ended()
            self.signal_recovery_end.set()
        if not self.tables.standbys_ready and not self.standby_remaining_total():
            self.tables.on_standbys_ready()
