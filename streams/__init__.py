"""NoETL's event-sourced distributed runtime, on Kafka."""

__version__ = "0.1.0"
