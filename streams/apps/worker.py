"""The worker: `faust -A streams.apps.worker worker`, `agents`, `tables`."""

from __future__ import annotations

from streams.apps.standalone import standalone
from streams.roles.worker import run, worker_app

app = standalone(worker_app, run)
