"""Kafka: clients and their settings, consumers, producers, record decoding."""
