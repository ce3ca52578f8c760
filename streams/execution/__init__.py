"""What an execution is: the fold shared by planner, projector and replay."""
