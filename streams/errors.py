"""The error tree; its second level is the policy.

StreamsError
├── PoisonRecord   can never succeed      -> quarantine it, move on
├── Inconsistent   state and log disagree -> stop, rebuild from the log
├── Unavailable    a dependency is down   -> hold the partition, retry
└── Refused        the rules forbid it    -> report to the caller

Packages subclass these four. A message states what happened, to what, and what to do;
the CLI prints it unchanged and exits with `exit_code`.
"""


class StreamsError(Exception):
    """Base class of all expected errors."""

    exit_code = 1


class PoisonRecord(StreamsError):
    """A record that can never be processed: quarantine it and move on."""

    exit_code = 6


class Inconsistent(StreamsError):
    """State and log disagree: stop, and rebuild from the log."""

    exit_code = 5


class Unavailable(StreamsError):
    """A dependency is down: hold the request and retry."""

    exit_code = 4
    dependency = "a dependency"
    """What is down, as reports name it."""


class Refused(StreamsError):
    """The rules forbid the request: report to the caller."""

    exit_code = 3
