"""Forks: new executions that begin with a past state of another one."""
