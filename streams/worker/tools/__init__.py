"""The tools a task can use, by kind."""
