"""The trigger: `faust -A streams.apps.trigger worker`, `agents`, `tables`."""

from __future__ import annotations

from streams.apps.standalone import standalone
from streams.roles.trigger import run, trigger_app

app = standalone(trigger_app, run)
