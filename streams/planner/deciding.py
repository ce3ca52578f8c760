"""A decision and whatever it needs: playbooks, payloads, results, manifests, found on the way."""

from __future__ import annotations

from collections import ChainMap, OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from streams.errors import Refused
from streams.execution.plan import Plan
from streams.planner.core import Decision, decide, decide_ended, fail_unreadable
from streams.planner.draft import Moment
from streams.planner.finding import manifest_of, result_of
from streams.planner.limits import Rules
from streams.planner.needs import (
    Known,
    NeedsManifest,
    NeedsPayload,
    NeedsPlaybook,
    NeedsResult,
    name_of,
)
from streams.planner.port import Ports

_PAYLOADS_KEPT = 64


class Deciding:
    """Asks the pure core, and keeps what it read for it, for it is often asked for again."""

    def __init__(self, ports: Ports, rules: Rules) -> None:
        self._ports, self._rules = ports, rules
        self._payloads: OrderedDict[str, Any] = OrderedDict()

    async def decision(self, plan: Plan, floor: datetime, lives: Mapping[str, str]) -> Decision:
        """Ask `decide`, and find whatever it needs; `floor` and `lives` as in `Moment`."""
        now = self._ports.clock.now()
        if plan.has_ended:
            return decide_ended(plan, now)
        try:
            playbook = await self._ports.playbooks.get(plan.catalog_id, plan.catalog_version)
        except Refused as error:
            return fail_unreadable(plan, self._rules, now, str(error))
        # What this decision has read stays until it is made, however much that is.
        mine: dict[str, Any] = {}
        known = Known(ChainMap(mine, self._payloads), {})
        while True:
            moment = Moment(
                playbook=playbook,
                rules=self._rules,
                now=now,
                floor=floor,
                known=known,
                lives=lives,
            )
            try:
                return decide(plan, moment)
            except NeedsResult as need:
                name, value = name_of(need.ref), await result_of(self._ports, need.ref)
                mine[name] = self._remember(name, value)
            except NeedsPayload as need:
                name, data = name_of(need.ref), await self._ports.payloads.get(need.ref)
                mine[name] = self._remember(name, orjson.loads(data))
            except NeedsPlaybook as need:
                found = await self._find(plan, need)
                asked = (need.path, need.version)
                known = replace(known, playbooks={**known.playbooks, asked: found})
            except NeedsManifest as need:
                made = await manifest_of(self._ports, plan, need.stage_id)
                known = replace(known, manifests={**known.manifests, need.stage_id: made})

    def _remember(self, name: str, value: Any) -> Any:
        self._payloads[name] = value
        while len(self._payloads) > _PAYLOADS_KEPT:
            self._payloads.popitem(last=False)
        return value

    async def _find(self, plan: Plan, need: NeedsPlaybook) -> tuple[int, int] | str:
        try:
            return await self._ports.playbooks.resolve(
                plan.tenant_id, plan.organization_id, need.path, need.version
            )
        except Refused as error:
            return str(error)
