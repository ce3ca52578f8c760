"""The facts role: `faust -A streams.apps.facts worker`, `agents`."""

from __future__ import annotations

from streams.apps.standalone import standalone
from streams.roles.facts import facts_app, run

app = standalone(facts_app, run)
