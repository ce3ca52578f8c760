"""Every metric that a process exports: name, kind, labels, meaning and roles.

`docs/metrics.md` is generated from this list (`python -m streams.dev.metrics_page`). Names
without `noetl_` are those of the specification, or of Prometheus' client.
"""

from __future__ import annotations

from streams.metrics import processes, tiers
from streams.metrics.metric import Metric
from streams.metrics.processes import SECONDS
from streams.metrics.roles import API, FACTS, PLANNER, PROJECTOR, STORES, TRIGGER, WORKER

_LONG_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 7200.0, 14400.0, 28800.0)

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
    roles=(*STORES, FACTS),
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
    bounds=SECONDS,
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
    bounds=(*SECONDS, 30.0, 60.0, 300.0, 900.0),
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

METRICS: tuple[Metric, ...] = tuple(
    sorted(
        (
            found
            for found in (*globals().values(), *vars(processes).values(), *vars(tiers).values())
            if isinstance(found, Metric)
        ),
        key=lambda metric: metric.name,
    )
)
"""All of them, by name."""


def metrics_of(role: str) -> tuple[Metric, ...]:
    """Return the metrics that a role's processes export."""
    return tuple(metric for metric in METRICS if role in metric.roles)
