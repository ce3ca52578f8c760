"""The projector: `faust -A streams.apps.projector worker`, `agents`, `tables`."""

from __future__ import annotations

from streams.apps.standalone import standalone
from streams.roles.projector import projector_app, run

app = standalone(projector_app, run)
