"""Declared metrics of processes as such: of all, of consumers, of the HTTP API."""

from __future__ import annotations

from streams.metrics.metric import Metric
from streams.metrics.roles import API, FEEDS, ROLES

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# Every process

ROLE_INFO = Metric(
    name="noetl_role_info",
    kind="gauge",
    help="1, with the role, the name and the version of the process.",
    labels=("role", "shard", "version"),
    roles=ROLES,
)
PROCESS_CPU = Metric(
    name="process_cpu_seconds_total",
    kind="counter",
    help="Processor time of the process, user and system.",
    roles=ROLES,
)
PROCESS_MEMORY = Metric(
    name="process_resident_memory_bytes",
    kind="gauge",
    help="Resident memory of the process.",
    roles=ROLES,
)
PROCESS_START = Metric(
    name="process_start_time_seconds",
    kind="gauge",
    help="When the process started, in seconds since 1970.",
    roles=ROLES,
)
PROCESS_FILES = Metric(
    name="process_open_fds",
    kind="gauge",
    help="Open file descriptors of the process.",
    roles=ROLES,
)

# Consumers

GROUP_BEHIND = Metric(
    name="noetl_group_behind_records",
    kind="gauge",
    help="Offsets between the committed position and the end, of the process's partitions.",
    labels=("group",),
    roles=FEEDS,
)
GROUP_FINISHED = Metric(
    name="noetl_group_records_finished_total",
    kind="counter",
    help="Records acknowledged.",
    labels=("group",),
    roles=FEEDS,
)
GROUP_PARTITIONS = Metric(
    name="noetl_group_partitions",
    kind="gauge",
    help="Partitions assigned to the process.",
    labels=("group",),
    roles=FEEDS,
)
GROUP_REBALANCES = Metric(
    name="noetl_group_rebalances_total",
    kind="counter",
    help="Rebalances of the group that the process took part in.",
    labels=("group",),
    roles=FEEDS,
)
IS_READY = Metric(
    name="noetl_ready",
    kind="gauge",
    help="1 if partitions are assigned, tables recovered, and no dependency is away.",
    roles=FEEDS,
)
DEPENDENCIES_AWAY = Metric(
    name="noetl_dependencies_away",
    kind="gauge",
    help="Dependencies that do not respond; work is held.",
    roles=FEEDS,
)
DEAD_LETTERS = Metric(
    name="noetl_dead_letters_total",
    kind="counter",
    help="Records put on the dead-letter topic, by kind of record.",
    labels=("kind",),
    roles=FEEDS,
)

# HTTP

HTTP_REQUESTS = Metric(
    name="noetl_http_requests_total",
    kind="counter",
    help="Requests to the API that were responded to, by route and status.",
    labels=("method", "route", "status"),
    roles=(API,),
)
HTTP_SECONDS = Metric(
    name="noetl_http_request_seconds",
    kind="histogram",
    help="Time to respond to requests to the API, by route.",
    labels=("method", "route"),
    bounds=SECONDS,
    roles=(API,),
)
