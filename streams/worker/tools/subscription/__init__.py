"""The subscription tool: one bounded poll of a Kafka topic for a consumer group."""
