"""The embedded stack: Postgres, Kafka, Connect, S3 and our roles as supervised processes."""
