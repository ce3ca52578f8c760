"""Metrics of the processes: their declaration, measuring tools, and the Prometheus page."""
