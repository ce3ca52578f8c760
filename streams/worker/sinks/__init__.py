"""Where sinks write to, beside Postgres: one driver for each storage."""
