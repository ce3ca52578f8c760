"""Settings: the layers, the origin of every value, and what a bad value says."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from streams.errors import Refused
from streams.settings import BadSettings, Loaded, Settings, load
from streams.settings.projections import DatabaseStore, FileStore

WHOLE = """\
runtime:
  tenant_id: ${NOETL_TENANT_ID}
  organization_id: ${NOETL_ORGANIZATION_ID}
  node_id: ${POD_IP:-10.0.0.1}
  cluster_id: ${NOETL_CLUSTER_ID}
  shard_id: ${NOETL_SHARD_ID}
  scheduler: {locality_preference: node, max_inflight_frames_per_worker: 8}
event_store:
  canonical_backend: postgres
  distribution_backend: kafka
  connection: {url: "kafka:9092", stream_prefix: noetl.events}
  canonical_connection:
    host: pg
    port: 5433
    database: ledger
    roles:
      append: {user: writer, password: pw}
  replay:
    snapshot_interval_events: 500
    checksum_algorithm: blake3
    require_projection_parity: false
connect: {url: "http://connect:8083", secrets_dir: /run/secrets}
serialization:
  envelope_format: canonical-json
  tabular_payload_format: arrow-ipc-stream
  schema_registry: {backend: external, path: /etc/schemas, url: "http://registry"}
  compression: zstd
  timezone: UTC
payload_store:
  backend: s3
  connection: {endpoint: "https://s3", bucket: b, region: r, access_key: a, secret_key: s}
  threshold_bytes: 262144
  content_addressing: sha256
  encryption_at_rest: true
  cache:
    tier_1_memory_mb: 1
    tier_15_node_budget_mb: 0
    tier_15_grace_seconds: 3
    tier_2_disk_gb: 4
    tier_2_disk_path: /cache
  results: {disk_path: /results, disk_mb: 1, pvc_path: /volume, pvc_mb: 2, duckdb_mb: 3}
  gc: {strategy: ttl, ttl_days: 7}
projection_stores:
  default: {backend: postgres, connection: {dsn: "postgresql://noetl:pw@pg/noetl"}}
  search: {backend: search-store, connection: {hosts: ["http://a:9200", "http://b:9200"]}}
  analytics: {backend: columnar-analytics, connection: {dsn: "${ANALYTICS_DSN}"}}
  streaming: {backend: streaming-materialized-view, connection: {dsn: "rw://rw"}}
materializations:
  event_lake: {backend: columnar-analytics, source: event_store, include_payload_refs: true}
  views: {backend: streaming-materialized-view, source: event_store, barrier_interval_ms: 1000}
snapshots: {backend: columnar-analytics}
frame_policy_defaults:
  loop: {size: 10, duration_ms: 20, memory_bytes: 30, parallelism: 40}
  fanout: {parallelism: 3}
  reduce: {size: null}
"""
NAMES = {
    "NOETL_TENANT_ID": "acme",
    "NOETL_ORGANIZATION_ID": "care",
    "NOETL_CLUSTER_ID": "prod-1",
    "NOETL_SHARD_ID": "worker-3",
    "ANALYTICS_DSN": "ch://ch",
}


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load_text(text: str, **env: str) -> Loaded:
    path = Path("streams.yaml")
    path.write_text(text, encoding="utf-8")
    return load(path, env=env)


def problems_of(text: str, **env: str) -> list[str]:
    with pytest.raises(BadSettings) as caught:
        load_text(text, **env)
    return [str(problem) for problem in caught.value.problems]


def test_nothing_at_all_gives_the_defaults() -> None:
    loaded = load(env={})

    assert loaded.settings == Settings()
    assert loaded.settings.event_store.distribution_backend == "kafka"
    assert loaded.settings.payload_store.threshold_bytes == 65_536
    assert loaded.settings.runtime.node_id == socket.gethostname()
    assert {entry.origin for entry in loaded} == {"default"}


def test_the_whole_file_is_understood() -> None:
    loaded = load_text(WHOLE, **NAMES)
    settings = loaded.settings

    shown = {entry.path: (entry.value, entry.origin) for entry in loaded}
    assert shown["payload_store", "threshold_bytes"][0] == 65_536  # as much as an event carries

    assert settings.runtime.tenant_id == "acme"
    assert settings.runtime.node_id == "10.0.0.1"
    assert settings.event_store.canonical_connection.dsn("append") == (
        "postgresql://writer:pw@pg:5433/ledger?sslmode=prefer&options=-c%20row_security%3Doff"
    )
    assert settings.event_store.canonical_connection.login("read").user == "noetl_read"
    assert not settings.event_store.replay.require_projection_parity
    assert settings.serialization.schema_registry.url == "http://registry"
    assert settings.payload_store.cache.tier_15_node_budget_mb == 0
    assert settings.projection_stores["search"].connection.hosts == (
        "http://a:9200",
        "http://b:9200",
    )
    assert settings.materializations["views"].barrier_interval_ms == 1000
    assert settings.snapshots.backend == "columnar-analytics"
    assert settings.frame_policy_defaults.reduce.size is None


def test_naming_one_key_of_a_section_keeps_the_defaults_of_its_neighbours() -> None:
    fanout = load_text("frame_policy_defaults: {fanout: {parallelism: 3}}").settings
    assert fanout.frame_policy_defaults.fanout.model_dump() == {
        "size": 1,
        "duration_ms": 5_000,
        "memory_bytes": 16_777_216,
        "parallelism": 3,
    }


def test_an_empty_section_means_its_defaults_and_takes_nothing_from_the_stack() -> None:
    Path("streams.yaml").write_text("event_store:\nframe_policy_defaults:\n  fanout:\n")
    stack = {"event_store": {"connection": {"url": "127.0.0.1:1"}}}
    loaded = load(env={}, stack=stack)

    assert loaded.settings.event_store.connection.url == "127.0.0.1:1"
    assert loaded.settings.frame_policy_defaults.fanout.parallelism == 8


@pytest.mark.parametrize("name", ["materializations", "credentials", "projection_stores"])
def test_a_section_of_names_may_be_empty_too(name: str) -> None:
    assert load_text(f"{name}:\n").settings == load(env={}).settings == Settings()


def test_each_layer_wins_over_the_one_below_and_is_remembered() -> None:
    key = "event_store.connection.url"
    stack = {"event_store": {"connection": {"url": "stack:1"}}}
    variable = "STREAMS__EVENT_STORE__CONNECTION__URL"
    path = Path("other.yaml")
    path.write_text("# first line\nevent_store:\n  connection:\n    url: file:1\n")

    def seen(loaded: Loaded) -> tuple[str, str]:
        return loaded.settings.event_store.connection.url, loaded.origin_of(key)

    assert seen(load(env={})) == ("127.0.0.1:9092", "default")
    assert seen(load(env={}, stack=stack)) == ("stack:1", "stack")
    assert seen(load(path, env={}, stack=stack)) == ("file:1", "other.yaml:4")
    assert seen(load(path, env={variable: "env:1"}, stack=stack)) == ("env:1", variable)


def test_a_layer_changes_only_the_leaves_it_names() -> None:
    path = Path("other.yaml")
    path.write_text("event_store: {connection: {stream_prefix: noetl.events}}")
    loaded = load(path, env={}, stack={"event_store": {"connection": {"url": "stack:1"}}})

    assert loaded.origin_of("event_store.connection.url") == "stack"
    assert loaded.origin_of("event_store.connection.stream_prefix") == "other.yaml:1"
    assert loaded.origin_of("event_store.replay.checksum_algorithm") == "default"
    with pytest.raises(KeyError):
        loaded.origin_of("event_store.conection.url")


def test_the_file_is_the_one_asked_for_else_the_variable_else_the_usual_one() -> None:
    for name in ("asked", "variable", "streams"):
        Path(f"{name}.yaml").write_text(f"runtime: {{tenant_id: {name}}}")

    def tenant(path: Path | None, **env: str) -> str:
        return load(path, env=env).settings.runtime.tenant_id

    assert tenant(Path("asked.yaml"), STREAMS_CONFIG="variable.yaml") == "asked"
    assert tenant(None, STREAMS_CONFIG="variable.yaml") == "variable"
    assert tenant(None) == "streams"


def test_the_names_that_deployments_set_already_are_understood() -> None:
    env = {**NAMES, "NOETL_NODE_ID": "n1", "STREAMS__RUNTIME__TENANT_ID": "ours"}
    loaded = load(env=env)

    assert loaded.settings.runtime.node_id == "n1"
    assert loaded.origin_of("runtime.cluster_id") == "NOETL_CLUSTER_ID"
    assert loaded.settings.runtime.tenant_id == "ours"
    assert loaded.origin_of("runtime.tenant_id") == "STREAMS__RUNTIME__TENANT_ID"


def test_environment_variables_carry_numbers_truths_and_lists() -> None:
    settings = load(
        env={
            "STREAMS__PAYLOAD_STORE__THRESHOLD_BYTES": "1024",
            "STREAMS__PAYLOAD_STORE__ENCRYPTION_AT_REST": "false",
            "STREAMS__PROJECTION_STORES__SEARCH__BACKEND": "search-store",
            "STREAMS__PROJECTION_STORES__SEARCH__CONNECTION__HOSTS": "http://a, http://b",
        }
    ).settings

    assert settings.payload_store.threshold_bytes == 1024
    assert settings.payload_store.encryption_at_rest is False
    assert settings.projection_stores["search"].connection.hosts == ("http://a", "http://b")
    assert settings.projection_stores["default"].backend == "postgres"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${SET}", "value"),
        ("a-${SET}-${SET}", "a-value-value"),
        ("${UNSET:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("${SET:-other}", "value"),
        ("${NUMBER}", "0123"),
        ("$${SET}", "${SET}"),
        ("$SET", "$SET"),
    ],
)
def test_references_to_the_environment_are_replaced(written: str, meant: str) -> None:
    text = f'runtime: {{cluster_id: "{written}"}}'
    loaded = load_text(text, SET="value", EMPTY="", NUMBER="0123")
    assert loaded.settings.runtime.cluster_id == meant


def test_a_value_where_a_later_layer_has_a_section_is_told() -> None:
    found = problems_of("event_store: 5", STREAMS__EVENT_STORE__CONNECTION__URL="kafka:1")
    assert found == [
        "streams.yaml:1: event_store: is a value here, but a section in "
        "STREAMS__EVENT_STORE__CONNECTION__URL"
    ]
    assert problems_of("runtime: {zone: a}", STREAMS__RUNTIME__ZONE__X="b")


def test_an_unset_variable_is_named_with_its_place() -> None:
    assert problems_of("connect:\n  url: ${NOWHERE}\n") == [
        "streams.yaml:2: connect.url: environment variable NOWHERE is not set; "
        "set it or write ${NOWHERE:-default}"
    ]


def test_an_unset_variable_is_not_reported_twice() -> None:
    text = "serialization:\n  schema_registry: {backend: external, url: '${NOWHERE}'}"
    assert len(problems_of(text)) == 1


BAD = [
    ("runtime:\n  tenent_id: x", ":2: runtime.tenent_id: unknown key; did you mean 'tenant_id'?"),
    ("runtim: {}", ":1: runtim: unknown key; did you mean 'runtime'?"),
    ("snapshots: {qqq: 1}", ":1: snapshots.qqq: unknown key; known here: backend"),
    ("runtime:\n\n  tenant_id: 123", ":3: runtime.tenant_id: must be text"),
    ("runtime: {tenant_id: ''}", ":1: runtime.tenant_id: must not be empty"),
    ("runtime: {tenant_id: ..}", ":1: runtime.tenant_id: must not be '..'"),
    ('runtime:\n  zone: "a\\0b"', ":2: runtime.zone: contains a control character"),
    (
        "runtime: {cluster_id: 2026-13-01}",
        ":1: runtime.cluster_id: is not a valid timestamp; put quotes",
    ),
    ("frames:\n  window: !!int foo", ":2: frames.window: is not a valid int; put quotes"),
    ("frames: {window: !!float foo}", ":1: frames.window: is not a valid float; put quotes"),
    ("frames: {window: !!int ''}", ":1: frames.window: is not a valid int; put quotes"),
    (
        "payload_store: {encryption_at_rest: !!bool maybe}",
        "encryption_at_rest: is not a valid bool; put",
    ),
    ("runtime: {zone: !!timestamp x}", ":1: runtime.zone: is not a valid timestamp; put quotes"),
    ("projection_stores: []", ":1: projection_stores: must be a section, with keys of its own"),
    ("projection_stores: 0", ":1: projection_stores: must be a section, with keys of its own"),
    ("snapshots: ''", ":1: snapshots: must be a section, with keys of its own"),
    (
        "projection_stores: {default: {backend: columnar-analytics, connection: {dsn: x}}}",
        ":1: projection_stores: 'default' has the backend 'columnar-analytics', which is not",
    ),
    (
        "event_store:\n  distribution_backend: nats-jetstream",
        ":2: event_store.distribution_backend: 'nats-jetstream' is not available in this version; "
        "use kafka",
    ),
    (
        "event_store: {connection: {stream_prefix: mine}}",
        "event_store.connection.stream_prefix: must be 'noetl.events', not 'mine'",
    ),
    ("event_store: 5", ":1: event_store: must be a section, with keys of its own"),
    (
        "event_store: {distribution_backend: kafak}",
        ":1: event_store.distribution_backend: must be 'kafka', 'nats-jetstream', 'google-pubsub'"
        ", 'azure-event-hubs', 'aws-kinesis' or 'aws-msk', not 'kafak'",
    ),
    (
        "payload_store: {threshold_bytes: many}",
        "threshold_bytes: must be a whole number, not 'many'",
    ),
    ("payload_store: {threshold_bytes: true}", "threshold_bytes: must be a whole number, not true"),
    ("payload_store: {threshold_bytes: 0}", "threshold_bytes: must be at least 1, not 0"),
    ("payload_store: {backend: local}", "payload_store: backend 'local' needs 'connection.path'"),
    ("payload_store: {encryption_at_rest: 7}", "encryption_at_rest: must be true or false, not 7"),
    (
        "serialization: {schema_registry: {backend: external}}",
        "serialization.schema_registry: backend 'external' needs 'url'",
    ),
    ("projection_stores: {s: {backend: search-store}}", "needs 'connection.hosts'"),
    (
        "projection_stores: {s: {bakend: postgres}}",
        "s.bakend: unknown key; did you mean 'backend'?",
    ),
    ("materializations: {m: {}}", "materializations.m: needs 'store', the name of a projection"),
    (
        "materializations: {m: {store: none}}",
        "'materializations.m.store' is 'none'; 'projection_stores' has default",
    ),
    (
        "projection_stores: {s: {backend: search-store, connection: {hosts: [a]}}}\n"
        "materializations: {m: {store: s}}",
        "'materializations.m.store' is 's': backend 'search-store' is not available",
    ),
    (
        "projection_stores: {s: {backend: key-value, connection: {dsn: 'rocksdb:here'}}}\n"
        "materializations: {m: {store: s}}",
        "backend 'key-value' needs a 'connection.dsn' such as 'rocksdb:/var/lib/streams/",
    ),
    (
        "projection_stores: {s: {backend: postgres, connection: {dsn: 'postgresql://a'}}}\n"
        "materializations: {m: {store: s, backend: columnar-analytics}}",
        "is 's', whose backend is 'postgres', not 'columnar-analytics'",
    ),
    (
        "connect:\n  url: a\n  secrets_dir: b\n  url: c",
        ":4: connect.url: is given twice; first on line 2",
    ),
    ("connect: {url: '${NO SUCH}'}", "'${NO SUCH}' is not of the form ${NAME}"),
    ("a: [1", ":1: is not YAML"),
    ("- a\n- b", ":1: the file must hold sections"),
    ("a: &a {b: *a}", "a.b: refers to itself"),
    ("a: {<<: {b: 1}}", "merging with '<<' is not supported"),
    ("a: !!python/object:os.system {}", "is not YAML: could not determine a constructor"),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=[said[:50] for _, said in BAD])
def test_a_bad_value_names_file_line_key_and_what_is_allowed(text: str, said: str) -> None:
    found = problems_of(text)
    assert any(said in problem for problem in found), found
    assert all(problem.startswith("streams.yaml:") for problem in found)


def test_all_problems_are_told_at_once_in_the_order_of_the_lines() -> None:
    text = "runtime:\n  tenent_id: x\n  shard_id: [1]\nconnect:\n  url: ${NOWHERE}\n"
    with pytest.raises(Refused, match=r"^4 bad settings:\n") as caught:
        load_text(text, STREAMS__PAYLOAD_STORE__GC__TTL_DAYS="soon")

    places = [line.split(": ")[0].strip() for line in str(caught.value).splitlines()[1:]]
    assert places == [
        "STREAMS__PAYLOAD_STORE__GC__TTL_DAYS",
        "streams.yaml:2",
        "streams.yaml:3",
        "streams.yaml:5",
    ]


@pytest.mark.parametrize("name", ["STREAMS__", "STREAMS__A____B", "STREAMS__RUNTIME__"])
def test_a_variable_that_names_no_setting_is_refused(name: str) -> None:
    with pytest.raises(BadSettings, match=f"{name}: is not a setting"):
        load(env={name: "1"})


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(BadSettings, match=r"absent\.yaml: cannot be read: No such file"):
        load(Path("absent.yaml"), env={})


def test_a_bad_secret_is_not_repeated_in_the_error() -> None:
    text = "event_store: {canonical_connection: {roles: {append: {user: [], password: 31337}}}}"
    assert "31337" not in " ".join(problems_of(text))
    misplaced = "event_store: {canonical_connection: {roles: {append: hunter2}}}"
    assert "hunter2" not in " ".join(problems_of(misplaced))


@pytest.mark.parametrize(
    ("host", "dsn"),
    [
        ("db", "postgresql://noetl_read:p%40%2F@db:5432/noetl?sslmode=prefer"),
        ("::1", "postgresql://noetl_read:p%40%2F@[::1]:5432/noetl?sslmode=prefer"),
        (
            "/run/pg",
            "postgresql://noetl_read:p%40%2F@/noetl?host=%2Frun%2Fpg&port=5432&sslmode=prefer",
        ),
    ],
)
def test_a_connection_string_quotes_what_it_holds(host: str, dsn: str) -> None:
    place = "STREAMS__EVENT_STORE__CANONICAL_CONNECTION__"
    loaded = load(env={f"{place}HOST": host, f"{place}ROLES__READ__PASSWORD": "p@/"})
    assert loaded.settings.event_store.canonical_connection.dsn("read") == dsn


@pytest.mark.parametrize(
    ("backend", "kind"),
    [("s3", "s3"), ("seaweedfs", "s3"), ("gcs", "gcs"), ("azure-blob", "object")],
)
def test_the_payload_store_is_one_of_the_result_stores(backend: str, kind: str) -> None:
    assert load_text(f"payload_store: {{backend: {backend}}}").settings.payload_store.kind == kind


def test_settings_do_not_show_secrets_when_printed() -> None:
    shown = repr(load_text(WHOLE, **NAMES).settings)
    assert "pw" not in shown
    assert "writer" in shown


def test_the_cluster_of_container_tasks_is_a_file_and_a_namespace() -> None:
    loaded = load_text("tools: {kubernetes: {kubeconfig: ~/.kube/config}}").settings
    assert (loaded.tools.kubernetes.namespace, loaded.tools.shell) == ("noetl", False)
    assert "tools.kubernetes.kubeconf" in " ".join(
        problems_of("tools: {kubernetes: {kubeconf: x}}")
    )


def test_a_projection_is_in_the_store_that_its_materialization_names() -> None:
    text = """
projection_stores:
  analytics: {backend: columnar-analytics, connection: {dsn: "duckdb:/data/a.duckdb"}}
  keyed: {backend: key-value, connection: {dsn: "rocksdb:/data/keyed"}}
  other: {backend: postgres, connection: {dsn: "postgresql://pg/other"}}
materializations:
  patients: {store: analytics}
  doctors: {store: keyed, backend: key-value}
  wards: {store: other}
  beds: {store: default}
"""
    settings = load_text(text).settings
    stores = settings.projection_stores
    assert settings.stores_of_projections == {
        "patients": "analytics",
        "doctors": "keyed",
        "wards": "other",
    }
    assert stores["analytics"].target() == FileStore("duckdb", Path("/data/a.duckdb"))
    assert stores["keyed"].target() == FileStore("rocksdb", Path("/data/keyed"))
    assert stores["other"].target() == DatabaseStore("postgresql://pg/other")
    assert stores["default"].target() is None
