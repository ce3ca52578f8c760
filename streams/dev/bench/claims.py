"""The measured claims: how each is measured, and its thresholds."""

from __future__ import annotations

from streams.dev.bench.claim_measures import acceptance, bench, second_start, simulated
from streams.dev.bench.prove import MeasuredClaim, Threshold
from streams.dev.simulator.plants import PLANTS

FAULTY = ("--error-rate", "0.05", "--timeout-rate", "0.01", "--timeout-s", "1")


def _at_most(figure: str, limit: float) -> Threshold:
    return Threshold(figure, limit, at_most=True)


CLAIMS: tuple[MeasuredClaim, ...] = (
    MeasuredClaim(
        "A stack with data is ready again quickly",
        "`streams up --detach` twice on one folder; the second, until its round trip is done",
        second_start,
        (_at_most("second_up_s", 20),),
    ),
    MeasuredClaim(
        "The log takes events at a good part of the speed of raw COPY",
        "`streams bench append --json`: median of three rounds of 20,000 frame commits",
        bench("append"),
        (Threshold("ratio_to_copy", 0.3), Threshold("ratio_single_to_fsync", 5)),
    ),
    MeasuredClaim(
        "The mirror costs little over raw Debezium, and loses or doubles nothing",
        "`streams bench mirror --json`: median of three rounds of 40,000 events; "
        "latency over 20 s at 500 events a second. Plain is Debezium without transforms, in "
        "JSON; against a leaner one the ratio is lower, see decisions/0003-mirror.md",
        bench("mirror"),
        (
            Threshold("ratio_to_plain", 0.7),
            _at_most("p99_ms", 250),
            _at_most("lost", 0),
            _at_most("doubled", 0),
        ),
    ),
    MeasuredClaim(
        "A workload of many small requests runs exactly, in few frames, near a plain script",
        "`streams bench pft --json`: 10 facilities of 200 patients without latency; the plain "
        "script before and after, the better one counts; frames of one row over 10 times 20 "
        "patients, scaled to the same number of cursor rows",
        bench("pft"),
        (
            _at_most("missing", 0),
            _at_most("doubled", 0),
            Threshold("rows_per_frame", 50),
            _at_most("events_per_frame", 4),
            _at_most("claims_ratio_to_frame_size_1", 1 / 50),
            _at_most("events_ratio_to_frame_size_1", 1 / 10),
            _at_most("peak_db_connections", 19),
            Threshold("ratio_to_plain", 0.4),
            Threshold("tier15_hit_ratio", 0.6),
            Threshold("reads_per_frame", 1),
        ),
    ),
    MeasuredClaim(
        "Rows in shared memory are read far faster than from the store",
        "`streams bench ipc --json`: a batch of 64 MB, written by one process and read by "
        "another, from the reference to the extremes of every column",
        bench("ipc"),
        (_at_most("attach_us", 100), Threshold("ratio_tier15_to_tier3", 20)),
    ),
    MeasuredClaim(
        "A busy and silent server costs retries, not rows",
        "`streams bench pft --error-rate 0.05 --timeout-rate 0.01 --timeout-s 1 --json`",
        bench("pft", *FAULTY),
        (
            _at_most("missing", 0),
            _at_most("doubled", 0),
            _at_most("failed_rows", 0),
            Threshold("retries", 1),
        ),
    ),
    MeasuredClaim(
        "A small execution ends soon after its trigger",
        "`streams bench latency --json`: one-step playbooks on an idle stack, from before the "
        "trigger record is published until `playbook.completed` was read from Kafka",
        bench("latency"),
        (_at_most("p50_ms", 100), _at_most("p99_ms", 300)),
    ),
    MeasuredClaim(
        "Frames cost little",
        "`streams bench frames --json`: 3,000 frames of one row that do nothing, 64 in flight",
        bench("frames"),
        (Threshold("frames_per_s", 500),),
    ),
    MeasuredClaim(
        "Payloads of any size move in little memory",
        "`streams bench payload --json`: two payloads of 2 GB, one of which packs to next to "
        "nothing, streamed in and out by a process of its own, beside boto3 and a file copy; "
        "a result of 2 GB that a worker downloads and stores, and the API hands out; payloads "
        "of 2 kB, eight at a time; 1,000 times the same megabyte",
        bench("payload"),
        (
            _at_most("peak_rss_mb", 128),
            _at_most("worker_peak_rss_mb", 128),
            _at_most("api_peak_rss_mb", 128),
            _at_most("objects_of_same", 1),
            Threshold("ratio_small_puts_to_raw", 1),
        ),
    ),
    MeasuredClaim(
        "The collector removes nothing live, and every orphan",
        "`streams bench collect --minutes 10 --json`: twelve writers store, name and forget "
        "few contents, small, large and streamed, also inside others, while the collector runs "
        "without a pause, with a grace of 3 s",
        bench("collect", "--minutes", "10"),
        (
            _at_most("live_removed", 0),
            _at_most("orphans_left", 0),
            Threshold("purged", 1),
            Threshold("restored", 1),
        ),
    ),
    MeasuredClaim(
        "Each record of a foreign topic starts one execution, whatever is killed",
        "`streams bench subscription --records 100000 --kills 3 --json`: Avro records of four "
        "partitions, in transactions of 200 of which every fifth is aborted; the trigger role and "
        "Kafka killed (SIGKILL) three times each while the records flow. Executions are started, "
        "not run: the stack has the trigger role alone",
        bench("subscription", "--records", "100000", "--kills", "3"),
        (
            Threshold("started", 100_000),
            _at_most("lost", 0),
            _at_most("doubled", 0),
            _at_most("aborted_started", 0),
            _at_most("rejected", 0),
            _at_most("reconcile_exit", 0),
            _at_most("lag", 0),
        ),
    ),
    MeasuredClaim(
        "A table of a million keys is soon rebuilt, and exact whatever is killed",
        "`streams bench tables --json`: 1,000,000 keys in four partitions, from the start of the "
        "process until its table is recovered, beside stock Faust with the same rows; 60,000 "
        "records, some aborted, counted by key while the process is killed three times and its "
        "disk deleted once, the counts rebuilt from the changelog and compared with the topic",
        bench("tables"),
        (
            _at_most("rebuild_s", 15),
            Threshold("rebuild_ratio_to_faust", 10),
            _at_most("lost", 0),
            _at_most("doubled", 0),
            _at_most("wrong_keys", 0),
        ),
    ),
    MeasuredClaim(
        "One planner has 100,000 open executions in little memory, and is soon back with them",
        "`streams bench many --executions 100000 --json`: executions that wait for a worker of a "
        "pool without workers; 50 one-step playbooks before and with them; the planner killed "
        "(SIGKILL) with its disk, then with its tables deleted, until an execution triggered at "
        "the kill has completed",
        bench("many", "--executions", "100000"),
        (
            Threshold("open", 100_000),
            Threshold("stored", 100_000),
            _at_most("peak_memory_mb", 400),
            _at_most("restart_s", 10),
            _at_most("restart_wiped_s", 60),
        ),
    ),
    MeasuredClaim(
        "A projector folds many times as fast as a plain Faust agent",
        "`streams bench project --json`: 80,000 mirrored events of 40 executions, the same fold "
        "and the same statements event by event in the agent",
        bench("project"),
        (Threshold("ratio_to_faust_agent", 5), Threshold("checksums_equal", 85)),
    ),
    MeasuredClaim(
        "Replay is fast, in constant memory, and as fast for a long log with snapshots",
        "`streams bench replay --json`: one execution of 1k, 10k, 100k and 1M events each; every "
        "checksum and every link of the chain is verified, and the checksum of the state is that "
        "of the live fold",
        bench("replay"),
        (
            Threshold("events_per_s", 50_000),
            _at_most("snapshot_ratio", 1.5),
            _at_most("peak_rss_ratio", 1.25),
            Threshold("checksums_equal", 4),
        ),
    ),
    MeasuredClaim(
        "2,000 simulated disasters end as they should, and planted bugs are found",
        "`streams simulate --seeds 2000 --json`, and once for each planted bug with `--plant`: "
        "the number of seeds until it shows",
        simulated,
        (
            _at_most("failures", 0),
            *(_at_most(f"{bug} shows after", 2000) for bug in PLANTS),
        ),
    ),
    MeasuredClaim(
        "Kills lose nothing",
        "`pytest tests/acceptance`: Connect killed three times under load, Postgres killed "
        "during appends; worker, planner, projector and broker killed twice each under a "
        "running playbook; the trigger process killed among 2,000 records; each with kill -9",
        acceptance,
        (_at_most("failed", 0), _at_most("skipped", 0)),
    ),
)
"""Every claim that can be measured here."""
