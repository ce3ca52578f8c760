"""The embedded stack: Postgres, Kafka, Connect, S3 and roles as supervised processes."""
