"""The event log in Postgres: append, read, migrations."""
