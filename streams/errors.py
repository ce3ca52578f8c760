"""The error tree; its second level is the policy.

StreamsError
├── PoisonRecord   can never succeed      -> quarantine it, move on
├── Inconsistent   state and log disagree -> stop, rebuild from the log
├── Unavailable    a dependency is down   -> hold the partition, retry
└── Refused        the rules forbid it    -> tell the caller

A room adds its own leaves below these four. A message says what happened, to what,
and what to do about it; the command line prints it as it is and exits with `exit_code`.
"""


class StreamsError(Exception):
    """Something this project knows how to name."""

    exit_code = 1


class PoisonRecord(StreamsError):
    """A record that can never be processed: quarantine it and move on."""

    exit_code = 6


class Inconsistent(StreamsError):
    """State and log disagree: stop, and rebuild from the log."""

    exit_code = 5


class Unavailable(StreamsError):
    """A dependency is down: hold what was asked and try again."""

    exit_code = 4


class Refused(StreamsError):
    """The rules forbid what was asked: tell the caller."""

    exit_code = 3
