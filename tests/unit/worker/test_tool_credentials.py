"""Where credentials are found."""

from __future__ import annotations

import pytest

from streams.worker.errors import BadConfig, UnknownCredential
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres.dsn import dsn_of, target_of

FOUND = ConfiguredCredentials(
    {"pg_main": {"dsn": "from settings"}, "api": {"token": "t"}},
    {
        "NOETL_CREDENTIAL_PG_MAIN": "from environment",
        "NOETL_CREDENTIAL_MY_API": '{"token": "x", "port": 5}',
        "NOETL_CREDENTIAL_GCS": '{"key_json": "{\\"private_key\\": \\"k\\"}", "tls": true}',
        "NOETL_CREDENTIAL_NESTED": '{"service_account_key": {"private_key": "c4nary"}}',
        "NOETL_CREDENTIAL_NULL": '{"token": "c4nary", "password": null}',
        "NOETL_CREDENTIAL_EMPTY": "{}",
        "NOETL_CREDENTIAL_BROKEN": '{"token": "se',
    },
)


async def test_the_environment_wins_over_the_settings() -> None:
    assert await FOUND.find("acme", "care", "pg_main") == {"dsn": "from environment"}
    assert await FOUND.find("acme", "care", "api") == {"token": "t"}


async def test_a_variable_may_hold_an_object_of_fields() -> None:
    assert await FOUND.find("acme", "care", "my-api") == {"token": "x", "port": "5"}


async def test_a_field_is_a_text_a_number_or_a_truth_value() -> None:
    found = await FOUND.find("acme", "care", "gcs")
    assert found == {"key_json": '{"private_key": "k"}', "tls": "true"}


@pytest.mark.parametrize("name", ["nested", "null", "empty"])
async def test_what_is_no_field_is_refused_and_not_made_a_text(name: str) -> None:
    with pytest.raises(BadConfig, match=f"NOETL_CREDENTIAL_{name.upper()}: ") as refused:
        await FOUND.find("acme", "care", name)
    assert "c4nary" not in str(refused.value)


async def test_an_unreadable_variable_is_named_without_its_content() -> None:
    with pytest.raises(BadConfig, match="NOETL_CREDENTIAL_BROKEN") as refused:
        await FOUND.find("acme", "care", "broken")
    assert "se" not in str(refused.value).split()


async def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(UnknownCredential, match="did you mean 'pg_main'"):
        await FOUND.find("acme", "care", "pg_mian")


def test_a_connection_string_is_made_from_fields() -> None:
    fields = {"host": "db", "user": "a b", "password": "p@:/", "database": "d"}
    assert dsn_of(fields) == "postgresql://a%20b:p%40%3A%2F@db:5432/d"
    assert dsn_of({"dsn": "x", "host": "db"}) == "x"
    prefixed = {f"db_{name}": one for name, one in (("host", "h"), ("port", "1"), ("name", "n"))}
    prefixed |= {"db_user": "u", "db_password": "p"}
    assert dsn_of(prefixed) == "postgresql://u:p@h:1/n"
    with pytest.raises(BadConfig, match="'dsn'"):
        dsn_of({"token": "t"})


def test_a_target_names_its_database_without_its_secret() -> None:
    assert target_of({"auth": "pg"}) == "auth:pg"
    one, same = (
        target_of({"dsn": "postgres://u:secret@h/d"}),
        target_of({"dsn": "postgres://u:secret@h/d"}),
    )
    assert one == same != target_of({"dsn": "postgres://u:secret@h/e"})
    assert "secret" not in one
