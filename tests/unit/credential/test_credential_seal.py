"""Sealing: what comes back, and what must not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.credential.errors import NoKey, NotOpened
from streams.credential.keys import KeyRing, keys_from, new_key, read_keys
from streams.credential.seal import seal, unseal
from streams.payload.port import Scope

SCOPE = Scope("acme", "care")
FIELDS = {"dsn": "postgresql://u:c4nary@h/db", "note": "ü"}


def ring(*lines: str) -> KeyRing:
    return read_keys("\n".join(lines or (new_key(),)), "test")


def test_what_was_sealed_is_opened_again():
    keys = ring()
    assert unseal(keys, SCOPE, "pg", seal(keys, SCOPE, "pg", FIELDS)) == FIELDS


def test_nothing_of_it_can_be_read_and_no_two_are_alike():
    keys = ring()
    one, two = seal(keys, SCOPE, "pg", FIELDS), seal(keys, SCOPE, "pg", FIELDS)
    assert b"c4nary" not in one.ciphertext
    assert one.nonce != two.nonce
    assert one.ciphertext != two.ciphertext
    assert "c4nary" not in repr(one)


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        (Scope("other", "care"), "pg"),
        (Scope("acme", "labs"), "pg"),
        (SCOPE, "pg2"),
        (Scope("acm", "ecare"), "pg"),
    ],
)
def test_a_row_copied_elsewhere_does_not_open(scope: Scope, name: str):
    keys = ring()
    with pytest.raises(NotOpened, match="another scope or name"):
        unseal(keys, scope, name, seal(keys, SCOPE, "pg", FIELDS))


def test_a_changed_row_does_not_open():
    keys = ring()
    made = seal(keys, SCOPE, "pg", FIELDS)
    changed = bytes([made.ciphertext[0] ^ 1]) + made.ciphertext[1:]
    with pytest.raises(NotOpened):
        unseal(keys, SCOPE, "pg", replace(made, ciphertext=changed))
    with pytest.raises(NotOpened):
        unseal(keys, SCOPE, "pg", replace(made, nonce=b""))


def test_the_first_key_seals_and_the_others_still_open():
    old, new = new_key(), new_key()
    made = seal(ring(old), SCOPE, "pg", FIELDS)
    both = ring("# newest first", new, "", old)
    assert unseal(both, SCOPE, "pg", made) == FIELDS
    assert seal(both, SCOPE, "pg", FIELDS).key_id == both.keys[0].id != made.key_id
    with pytest.raises(NotOpened, match=made.key_id):
        unseal(ring(new), SCOPE, "pg", made)


@pytest.mark.parametrize("text", ["", "# nothing\n", "no base64!", "c2hvcnQ="])
def test_what_is_no_key_is_refused_without_quoting_it(text: str):
    with pytest.raises(NoKey) as caught:
        read_keys(text, "the file")
    assert "the file" in str(caught.value)
    assert "c2hvcnQ" not in str(caught.value)


def test_a_missing_key_says_what_to_set(tmp_path):
    for keys in (keys_from(None, None), keys_from(None, str(tmp_path / "none"))):
        with pytest.raises(NoKey, match="key_file"):
            keys()


def test_a_key_file_is_read_anew_each_time(tmp_path):
    file = tmp_path / "keys"
    file.write_text(new_key())
    keys = keys_from(None, str(file))
    first = keys().current.id
    file.write_text(f"{new_key()}\n{file.read_text()}")
    assert keys().current.id != first
    assert keys().get(first) is not None


def test_a_key_does_not_show_itself():
    line = new_key()
    assert line.strip("=") not in repr(ring(line))
    assert repr(ring(line).current.secret) not in repr(ring(line))
