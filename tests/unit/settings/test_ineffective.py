"""A setting that was given and has no effect is named, with its origin."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from streams.cli import cli
from streams.settings import load
from streams.settings.unused import ineffective

LOCAL = {
    "STREAMS__PAYLOAD_STORE__BACKEND": "local",
    "STREAMS__PAYLOAD_STORE__CONNECTION__PATH": "/tmp/x",
}

IN_DUCKDB = {
    "STREAMS__PROJECTION_STORES__ANALYTICS__BACKEND": "columnar-analytics",
    "STREAMS__PROJECTION_STORES__ANALYTICS__CONNECTION__DSN": "duckdb:/data/analytics.duckdb",
    "STREAMS__MATERIALIZATIONS__LAKE__STORE": "analytics",
}


@pytest.mark.parametrize(
    ("name", "value", "more", "why"),
    [
        ("FRAME_POLICY_DEFAULTS__REDUCE__SIZE", "5", {}, "not used yet"),
        ("SNAPSHOTS__BACKEND", "columnar-analytics", {}, "snapshots are stored in Postgres"),
        ("MATERIALIZATIONS__LAKE__BACKEND", "columnar-analytics", {}, "name a `store` of"),
        ("MATERIALIZATIONS__LAKE__INCLUDE_PAYLOAD_REFS", "true", IN_DUCKDB, "not used yet"),
        ("PROJECTION_STORES__MORE__BACKEND", "postgres", IN_DUCKDB, "names this store"),
        ("PAYLOAD_STORE__ENCRYPTION_AT_REST", "true", LOCAL, "not used by the backend local"),
        ("PAYLOAD_STORE__CONNECTION__REGION", "eu", LOCAL, "not used by the backend local"),
        ("PAYLOAD_STORE__THRESHOLD_BYTES", "262144", {}, "reduced to 65536"),
    ],
)
def test_a_setting_without_effect_is_named(
    name: str, value: str, more: dict[str, str], why: str
) -> None:
    loaded = load(env={f"STREAMS__{name}": value, **more})
    (found,) = list(ineffective(loaded))
    assert ".".join(found[0].path) == name.lower().replace("__", ".")
    assert (found[0].origin, why in found[1]) == (f"STREAMS__{name}", True)


def test_defaults_and_settings_that_act_are_not_named() -> None:
    given = {"STREAMS__PAYLOAD_STORE__CONNECTION__REGION": "eu-central-1"}
    given["STREAMS__PAYLOAD_STORE__THRESHOLD_BYTES"] = "1024"
    assert list(ineffective(load(env=given))) == []
    assert list(ineffective(load(env=LOCAL))) == []
    assert list(ineffective(load(env=IN_DUCKDB))) == []


def test_config_show_warns() -> None:
    env = {"STREAMS__PAYLOAD_STORE__THRESHOLD_BYTES": "262144"}
    answer = CliRunner().invoke(cli, ["config", "show"], env=env)
    assert answer.exit_code == 0
    assert "payload_store.threshold_bytes: reduced to 65536" in answer.output
