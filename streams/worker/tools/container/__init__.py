"""The container tool: a task that runs as a Kubernetes Job."""
