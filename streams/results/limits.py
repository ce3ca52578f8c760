"""How much of a result an event carries; what is larger goes to a payload."""

DEEPEST = 150
"""Levels of a value that an event carries; it takes 200, and has some of its own around it."""
VALUES_BYTES = 32 * 1024
"""An author's named values that the planner writes, such as arguments and changes of `ctx`."""
NAMES_BYTES = 16 * 1024
"""The names of values that were spilled."""
EVENT_BYTES = 56 * 1024
"""The result of a command; the rest of its event is for the names of what was spilled."""
TASKS_BYTES = 12 * 1024
"""The data of a step's other tasks, all together."""
CTX_BYTES = 8 * 1024
"""Changes of `ctx` in the event of a frame or command."""
META_BYTES = 12 * 1024
"""The `meta` of a result."""
EXTRACTED_BYTES = 8 * 1024
"""The fields that `spec.result` selects."""
