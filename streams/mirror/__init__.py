"""The log on Kafka: Debezium connectors, watermark, alarms, rebuild."""
