"""Decision loop: calls the pure core, and loads the inputs it needs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from streams.errors import Refused
from streams.execution.plan import Plan
from streams.planner.core import Decision, decide, decide_ended, fail_unreadable
from streams.planner.decision_inputs import DecisionInputs, NeedsInput
from streams.planner.draft import Moment
from streams.planner.limits import Rules
from streams.planner.port import PlannerPorts


class Decider:
    """Makes decisions; consecutive ones share loaded inputs."""

    def __init__(self, ports: PlannerPorts, rules: Rules) -> None:
        self._ports, self._rules = ports, rules
        self._inputs = DecisionInputs(ports)

    async def decision(
        self, plan: Plan, floor: datetime, incarnations: Mapping[str, str]
    ) -> Decision:
        """Call `decide` until it needs nothing more; `floor` and `incarnations` as in `Moment`."""
        now = self._ports.clock.now()
        if plan.has_ended:
            return decide_ended(plan, now)
        try:
            playbook = await self._ports.playbooks.get(plan.catalog_id, plan.catalog_version)
        except Refused as error:
            return fail_unreadable(plan, self._rules, now, str(error))
        known = self._inputs.known()
        while True:
            moment = Moment(
                playbook=playbook,
                rules=self._rules,
                now=now,
                floor=floor,
                known=known,
                incarnations=incarnations,
            )
            try:
                return decide(plan, moment)
            except NeedsInput as need:
                known = await self._inputs.load(plan, need, known)
