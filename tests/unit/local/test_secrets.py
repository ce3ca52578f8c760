import stat
from itertools import count

from streams.data_folder import layout_of
from streams.local.secrets import ROLES, complete, load_secrets


def test_secrets_that_exist_are_kept_and_gaps_are_filled():
    numbers = count()
    made = complete(
        {"superuser_password": "old", "role_passwords": {"noetl_read": "kept"}},
        lambda: f"made-{next(numbers)}-with-some-length",
    )
    assert made.superuser_password == "old"
    assert made.role_passwords["noetl_read"] == "kept"
    assert set(made.role_passwords) == set(ROLES)
    assert len(set(made.role_passwords.values())) == len(ROLES)


def test_the_next_start_reads_what_the_first_one_made(tmp_path):
    layout = layout_of(tmp_path)
    layout.create()
    assert load_secrets(layout) == load_secrets(layout)


def test_connect_reads_the_same_passwords_by_file_and_by_folder(tmp_path):
    layout = layout_of(tmp_path)
    layout.create()
    made = load_secrets(layout)
    folder = layout.connect_secrets
    password = made.role_passwords["noetl_mirror"]
    assert (folder / "noetl_mirror").read_text() == password
    assert f"noetl_mirror={password}\n" in (folder / "postgres.properties").read_text()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (*folder.iterdir(), layout.secrets)}
    assert modes == {0o600}
