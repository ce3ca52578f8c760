"""The planner: `faust -A streams.apps.planner worker`, `agents`, `tables`."""

from __future__ import annotations

from streams.apps.standalone import standalone
from streams.roles.planner import planner_app, run

app = standalone(planner_app, run)
