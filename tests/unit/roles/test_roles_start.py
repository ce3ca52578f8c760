"""Finding a role by its name, and the processes that `streams up` makes of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from streams.app import ANALYTICS_ROLES, ROLES
from streams.cli import cli
from streams.cli.stack import role_counts
from streams.data_folder import layout_of
from streams.local.process import environment_of
from streams.local.roles import role_services
from streams.roles.start import ALL_ROLES, UnknownRole, existing_roles, find_role, node_roles
from streams.settings import BadSettings, load


def test_every_role_has_a_module_of_its_name():
    assert all(place == f"streams.roles.{role}:run" for role, place in ROLES.items())


def test_a_role_whose_module_is_not_there_is_left_out():
    assert existing_roles({"here": "streams.roles.start:x", "gone": "streams.roles.gone:x"}) == (
        "here",
    )


def test_a_role_is_imported_by_its_place():
    assert find_role("me", {"me": "streams.roles.start:find_role"}) is find_role


def test_an_unknown_role_is_refused_with_the_known_ones():
    with pytest.raises(UnknownRole, match="baker: no such role; known are planner, worker"):
        find_role("baker")


def test_each_process_of_a_role_has_a_name_that_outlives_it(tmp_path: Path):
    parts = role_services(layout_of(tmp_path), {"planner": 1, "worker": 2})
    assert [part.name for part in parts] == ["planner-0", "worker-0", "worker-1"]
    assert [part.environment["NOETL_SHARD_ID"] for part in parts] == [part.name for part in parts]
    assert all(str(tmp_path) in part.command for part in parts)


def test_roles_are_configured_as_whoever_started_them(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("STREAMS__FRAMES__WINDOW", "3")
    monkeypatch.setenv("WAREHOUSE_DSN", "what ${WAREHOUSE_DSN} of streams.yaml stands for")
    monkeypatch.setenv("AWS_PROFILE", "what a cloud client reads")
    (part,) = role_services(layout_of(tmp_path), {"worker": 1})
    given = environment_of(part)
    assert given == {**os.environ, "NOETL_SHARD_ID": "worker-0"}


def test_servers_are_not(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "not for servers")
    (role,) = role_services(layout_of(tmp_path), {"worker": 1})
    assert "PGPASSWORD" not in environment_of(replace(role, environment={}))


async def test_a_role_is_ready_only_by_the_word_of_a_living_process(tmp_path: Path):
    layout = layout_of(tmp_path)
    layout.create()
    (part,) = role_services(layout, {"worker": 1})
    (layout.roles / "worker-0.ready").write_text("4194305")  # more than Linux gives
    assert not await part.ready()


def test_up_refuses_a_role_that_is_not_there(tmp_path: Path):
    run = CliRunner().invoke(cli, ["up", "--roles", "baker", "--data", str(tmp_path)])
    assert run.exit_code == 2
    assert "'baker' is not a role" in run.output


@pytest.mark.parametrize("number", ["²", "65536", "-1", "", "9" * 5000])
def test_up_refuses_a_port_that_is_no_number(number: str, tmp_path: Path):
    run = CliRunner().invoke(cli, ["up", "--port", f"postgres={number}", "--data", str(tmp_path)])
    assert run.exit_code == 2
    assert "is not NAME=NUMBER" in run.output


def test_a_node_has_a_broker_where_the_settings_ask_for_sealed_memory():
    carrier = "STREAMS__PAYLOAD_STORE__CACHE__TIER_15_CARRIER"
    budget = "STREAMS__PAYLOAD_STORE__CACHE__TIER_15_NODE_BUDGET_MB"
    assert node_roles(load(env={}).settings) == ()
    assert node_roles(load(env={carrier: "shm"}).settings) == ()
    assert node_roles(load(env={carrier: "memfd"}).settings) == ("shm-broker",)
    assert find_role("broker") is find_role("shm-broker")
    assert node_roles(load(env={carrier: "memfd", budget: "0"}).settings) == ()
    with pytest.raises(BadSettings, match="tier_15_carrier"):
        load(env={carrier: "tape"})


def test_the_profile_full_adds_the_roles_for_analysts():
    every = existing_roles()
    assert "facts" not in role_counts("core", every, {"default": 1})
    assert role_counts("full", every, {"default": 1})["facts"] == 1
    assert "facts" not in role_counts("full", ("planner",), {"default": 1})
    assert role_counts("full", ("worker",), {"default": 2, "gpu": 1}) == {
        "worker": 2,
        "worker:gpu": 1,
    }
    assert set(ANALYTICS_ROLES) <= set(existing_roles(ALL_ROLES))
