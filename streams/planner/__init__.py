"""The planner: decides the next events of an execution and publishes work."""
