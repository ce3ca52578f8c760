"""Consumption of Kafka by a role's process: batches, acknowledged last."""
