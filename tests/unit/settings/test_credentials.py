"""Credentials in the settings: laid over one another, and never shown."""

from __future__ import annotations

from streams.masking import HIDDEN
from streams.settings import load
from streams.settings.mask import masked

STACK = {"credentials": {"pg_local": {"dsn": "postgresql://a:w0rd-of-mine@h/author"}}}


def test_a_credential_of_the_stack_is_found_by_its_name():
    settings = load(env={}, stack=STACK).settings
    found = settings.credentials["pg_local"]["dsn"].get_secret_value()
    assert found == "postgresql://a:w0rd-of-mine@h/author"


def test_an_environment_variable_adds_a_credential_beside_the_stacks():
    env = {"STREAMS__CREDENTIALS__WAREHOUSE__TOKEN": "t0k"}
    settings = load(env=env, stack=STACK).settings
    assert set(settings.credentials) == {"pg_local", "warehouse"}


def test_every_field_of_a_credential_is_masked_whatever_its_name():
    loaded = load(env={}, stack={"credentials": {"api": {"user": "u", "anything": "x"}}})
    shown = {e.path: masked(e.path, e.value) for e in loaded if e.path[0] == "credentials"}
    assert shown == {
        ("credentials", "api", "user"): HIDDEN,
        ("credentials", "api", "anything"): HIDDEN,
    }


def test_a_credentials_value_is_never_in_its_text():
    assert "w0rd-of-mine" not in repr(load(env={}, stack=STACK).settings)


def test_a_lease_outlives_its_heartbeats_by_default():
    frames = load(env={}).settings.frames
    assert frames.lease_seconds >= 3 * frames.heartbeat_seconds
