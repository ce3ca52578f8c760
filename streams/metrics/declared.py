"""Every metric that a process exports: name, kind, labels, meaning and roles.

`docs/metrics.md` is generated from this list (`python -m streams.dev.metrics_page`). Names
without `noetl_` are those of the specification, or of Prometheus' client.
"""

from __future__ import annotations

from streams.metrics import tiers
from streams.metrics.metric import Metric
from streams.metrics.roles import API, FEEDS, PLANNER, PROJECTOR, ROLES, STORES, TRIGGER, WORKER

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 7200.0, 14400.0, 28800.0)

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

# The log

EVENTS_APPENDED = Metric(
    name="noetl_events_appended_total",
    kind="counter",
    help="Events that the process appended to the log; duplicates are not counted.",
    labels=("event_type",),
    roles=(PLANNER, WORKER, TRIGGER, API),
)
POOL_DEPTH = Metric(
    name="pg_pool_depth_highwatermark",
    kind="gauge",
    help="Most connections in use and callers waiting for one at once, in the last one to two "
    "minutes, of a connection pool of the process.",
    labels=("pool",),
    roles=STORES,
)

# Frames

FRAME_BACKLOG = Metric(
    name="frame_backlog_total",
    kind="gauge",
    help="Frames that wait for a worker, including those not dispatched yet, of the executions "
    "that the planner owns; of a claim cursor, those dispatched only.",
    labels=("stage_kind",),
    roles=(PLANNER,),
)
REAPER_RATE = Metric(
    name="frame_reaper_republish_rate",
    kind="gauge",
    help="Frames per second, over the last minute, whose lease expired and which are "
    "dispatched again.",
    roles=(PLANNER,),
)
REAPER_REPUBLISHED = Metric(
    name="noetl_frame_reaper_republished_total",
    kind="counter",
    help="Frames whose lease expired and which are dispatched again.",
    roles=(PLANNER,),
)
EXECUTION_SECONDS = Metric(
    name="noetl_execution_seconds",
    kind="histogram",
    help="Wall time of executions, from start to end, by final status.",
    labels=("status",),
    bounds=_LONG_SECONDS,
    roles=(PLANNER,),
)
OPEN_EXECUTIONS = Metric(
    name="noetl_open_executions",
    kind="gauge",
    help="Executions that the planner owns and that have not ended.",
    roles=(PLANNER,),
)
CLAIM_SECONDS = Metric(
    name="noetl_claim_seconds",
    kind="histogram",
    help="Time to claim a frame or command in the log; outcome: claimed, or lost to another "
    "worker.",
    labels=("kind", "outcome"),
    bounds=_SECONDS,
    roles=(WORKER,),
)
FRAMES = Metric(
    name="noetl_frames_total",
    kind="counter",
    help="Attempts at frames that ended; outcome: committed, empty (committed without rows), "
    "failed.",
    labels=("outcome",),
    roles=(WORKER,),
)
FRAME_ROWS = Metric(
    name="noetl_frame_rows_total",
    kind="counter",
    help="Rows of checkpoints and commits of frames; outcome: done, including failed, or failed.",
    labels=("outcome",),
    roles=(WORKER,),
)
FRAME_P95 = Metric(
    name="frame_p95_lease_duration",
    kind="gauge",
    help="95th percentile, over the last five minutes, of the seconds from claim to commit of "
    "frames; 0 without any.",
    roles=(WORKER,),
)
FRAME_LEASE_SECONDS = Metric(
    name="noetl_frame_lease_seconds",
    kind="histogram",
    help="Time from claim to commit of frames.",
    bounds=(*_SECONDS, 30.0, 60.0, 300.0, 900.0),
    roles=(WORKER,),
)

# Projections

PROJECTED_ROWS = Metric(
    name="noetl_projection_rows_written_total",
    kind="counter",
    help="Rows sent to the projection store in transactions that were committed.",
    labels=("table",),
    roles=(PROJECTOR,),
)
PROJECTION_LAG_RECORDS = Metric(
    name="noetl_projection_lag_records",
    kind="gauge",
    help="Offsets between the committed position and the end, of the shard's partitions.",
    labels=("shard",),
    roles=(PROJECTOR,),
)
PROJECTION_LAG_SECONDS = Metric(
    name="noetl_projection_lag_seconds",
    kind="gauge",
    help="Age of the oldest record being projected, by its timestamp; between two batches, the "
    "age at which the last one was projected; 0 if nothing is left.",
    labels=("shard",),
    roles=(PROJECTOR,),
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
    bounds=_SECONDS,
    roles=(API,),
)

METRICS: tuple[Metric, ...] = tuple(
    sorted(
        (
            found
            for found in (*globals().values(), *vars(tiers).values())
            if isinstance(found, Metric)
        ),
        key=lambda metric: metric.name,
    )
)
"""All of them, by name."""


def metrics_of(role: str) -> tuple[Metric, ...]:
    """Return the metrics that a role's processes export."""
    return tuple(metric for metric in METRICS if role in metric.roles)
