from pathlib import Path

import pytest

from streams.local.errors import NoUnprivilegedUser
from streams.local.unprivileged import choose_user_id


def test_a_data_folder_gets_the_same_user_every_time():
    assert choose_user_id(Path("/a"), ()) == choose_user_id(Path("/a"), ())


def test_two_data_folders_get_two_users():
    assert choose_user_id(Path("/a"), ()) != choose_user_id(Path("/b"), ())


def test_a_user_that_someone_else_is_is_not_taken():
    first = choose_user_id(Path("/a"), ())
    assert choose_user_id(Path("/a"), {first}) not in {first, 0}


def test_when_every_user_is_taken_it_says_so():
    with pytest.raises(NoUnprivilegedUser, match="Run `streams up` as an ordinary user"):
        choose_user_id(Path("/a"), range(70_000))
