"""How a process consumes Kafka: batches, acknowledged last."""
