"""Roles by name, with the functions that run them."""

from __future__ import annotations

from collections.abc import Mapping

ROLES: Mapping[str, str] = {
    "planner": "streams.roles.planner:run",
    "worker": "streams.roles.worker:run",
    "projector": "streams.roles.projector:run",
    "trigger": "streams.roles.trigger:run",
    "api": "streams.roles.api:run",
    "collector": "streams.roles.collector:run",
}
"""Long-running processes that `streams run` and `streams up` start."""
NODE_ROLES: Mapping[str, str] = {"shm-broker": "streams.roles.shm_broker:run"}
"""Optional processes, one of each per node."""
ANALYTICS_ROLES: Mapping[str, str] = {"facts": "streams.roles.facts:run"}
"""Processes for analysts; `streams up` starts them with the profile `full`."""
