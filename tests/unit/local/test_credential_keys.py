"""The stack's key for credentials and its workers' token: made once, private, named in settings."""

from __future__ import annotations

import stat
from pathlib import Path

from streams.app import keys_of, worker_token_of
from streams.data_folder import layout_of
from streams.local.credential_keys import key_settings, provide_keys
from streams.masking import HIDDEN
from streams.settings import load
from streams.settings.mask import masked


def test_they_are_made_once_for_their_owner_only(tmp_path: Path):
    layout = layout_of(tmp_path / "data")
    layout.create()
    assert key_settings(layout) == {}
    provide_keys(layout)
    made = {path: path.read_bytes() for path in (layout.credential_key, layout.worker_token)}
    provide_keys(layout)
    for path, content in made.items():
        assert path.read_bytes() == content
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_settings_lead_to_them(tmp_path: Path):
    layout = layout_of(tmp_path / "data")
    layout.create()
    provide_keys(layout)
    settings = load(env={}, stack={"credential_store": key_settings(layout)}).settings
    assert len(keys_of(settings)().current.secret) == 32
    assert worker_token_of(settings) == layout.worker_token.read_text().strip()


def test_a_key_and_a_token_in_the_environment_are_masked():
    env = {
        "STREAMS__CREDENTIAL_STORE__KEY": "c4nary",
        "STREAMS__CREDENTIAL_STORE__WORKER_TOKEN": "c4nary",
    }
    shown = {e.path[-1]: masked(e.path, e.value) for e in load(env=env) if e.value == "c4nary"}
    assert shown == {"key": HIDDEN, "worker_token": HIDDEN}
