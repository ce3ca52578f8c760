"""Sink drivers, one for each storage other than Postgres."""
