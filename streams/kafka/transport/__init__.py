"""Faust's Kafka transport with exact offsets: whole fetches, read committed, acknowledged last."""
