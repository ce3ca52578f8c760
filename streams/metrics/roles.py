"""Names of the roles, as labels of metrics have them, and groups of roles."""

from __future__ import annotations

PLANNER, WORKER, PROJECTOR, TRIGGER, API = "planner", "worker", "projector", "trigger", "api"
FACTS, COLLECTOR, BROKER = "facts", "collector", "shm-broker"
ROLES = (PLANNER, WORKER, PROJECTOR, TRIGGER, API, FACTS, COLLECTOR, BROKER)
FEEDS = (PLANNER, WORKER, PROJECTOR, TRIGGER, FACTS)
TIERS = (WORKER, PROJECTOR, API)
STORES = (PLANNER, WORKER, PROJECTOR, TRIGGER, API)
