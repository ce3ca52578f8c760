"""Sinks of Kafka Connect: started, measured, verified and rebuilt."""
