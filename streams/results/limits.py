"""Size limits of results in events; larger values go to payloads."""

DEEPEST = 150
"""Nesting depth of a value in an event, below the event's own limit of 200."""
VALUES_BYTES = 32 * 1024
"""Named values that the planner writes, such as arguments and changes of `ctx`."""
NAMES_BYTES = 16 * 1024
"""The names of values that were spilled."""
EVENT_BYTES = 56 * 1024
"""The result of a command; the rest of its event is for the names of spilled values."""
TASKS_BYTES = 12 * 1024
"""The data of a step's other tasks, all together."""
CTX_BYTES = 8 * 1024
"""Changes of `ctx` in the event of a frame or command."""
VARS_BYTES = 8 * 1024
"""Values of a step that its rules set, in the event of a frame or command."""
META_BYTES = 12 * 1024
"""The `meta` of a result."""
EXTRACTED_BYTES = 8 * 1024
"""The fields that `spec.result` selects."""
