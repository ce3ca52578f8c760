"""State of an execution and its fold, shared by planner, projector and replay."""
