"""The type and status of a problem are public, and the type is the name of an error class."""

from __future__ import annotations

import subprocess
import sys

from streams.api.problems import name_of, status_of
from streams.log.errors import VersionConflict

PACKAGES = (
    *("api", "catalog", "credential", "errors", "events", "execution", "log", "payload"),
    *("playbook", "replay", "results", "subscription", "trigger"),
)
"""Whose errors a route may raise; the others end the process at its start."""
TYPES = {
    401: {
        "not-allowed",
        "not-verified",
    },
    403: {
        "foreign-result",
        "not-named",
        "payload-foreign",
    },
    404: {
        "no-credential",
        "no-such-execution",
        "no-such-result",
        "no-such-webhook",
        "not-found",
        "payload-missing",
        "unknown-path",
        "unknown-version",
    },
    409: {
        "already-so",
        "idempotency-conflict",
        "missing-object",
        "not-held",
        "not-yours",
        "root-ended",
        "shared-path",
        "taken-webhook",
        "tampered-log",
        "version-conflict",
        "would-repeat",
    },
    410: {
        "result-expired",
    },
    422: {
        "bad-batch",
        "bad-credential",
        "bad-cutoff",
        "bad-event",
        "bad-field",
        "bad-locator",
        "bad-override",
        "bad-playbook",
        "bad-rate",
        "bad-request",
        "bad-sink",
        "bad-subscription",
        "bad-template",
        "bad-trigger",
        "expression-failed",
        "foreign-payload",
        "foreign-root",
        "inline-too-large",
        "missing-field",
        "mutable-payload",
        "newer-bundle",
        "no-key",
        "no-such-backend",
        "not-a-bundle",
        "not-in-bundle",
        "not-opened",
        "not-steered",
        "not-utc",
        "nothing-to-fork",
        "other-kind",
        "partly-entered",
        "payload-bomb",
        "payload-corrupt",
        "payload-not-stored",
        "poison-record",
        "refused",
        "too-large-for-json",
        "too-large-to-read",
        "too-long",
        "too-many-rows",
        "undecodable-event",
        "unknown-projection",
        "unknown-schema",
        "unselectable",
        "unusable-message",
    },
    429: {
        "limit-reached",
    },
    500: {
        "bad-catalogue",
        "bad-upcaster",
        "damaged-bundle",
        "gap",
        "inconsistent",
        "missing-upcaster",
        "truncated-bundle",
        "unreadable-event",
        "unwritable-schema",
    },
    503: {
        "copy-failed",
        "log-unavailable",
        "newer-event",
        "no-worker-id-free",
        "payload-unavailable",
        "provider-unavailable",
        "schemas-unavailable",
        "secret-unavailable",
        "unavailable",
        "webhook-paused",
    },
}
LIST_ERRORS = """
import streams.roles.api
from streams.api.problems import name_of, status_of
from streams.errors import StreamsError

def below(error):
    for kind in error.__subclasses__():
        yield kind
        yield from below(kind)

for error in set(below(StreamsError)):
    print(error.__module__, status_of(error), name_of(error))
"""


def types_of_the_api_process() -> dict[int, set[str]]:
    """Return the types by status, of a process that has imported the API and nothing else."""
    listed = subprocess.run(
        [sys.executable, "-c", LIST_ERRORS], capture_output=True, text=True, check=True
    )
    found: dict[int, set[str]] = {}
    for line in listed.stdout.splitlines():
        module, status, name = line.split()
        if module.split(".")[1] in PACKAGES:
            found.setdefault(int(status), set()).add(name)
    return found


def test_no_public_type_of_a_problem_has_changed() -> None:
    assert types_of_the_api_process() == TYPES


def test_a_type_is_the_class_name_in_lower_case_words() -> None:
    assert (name_of(VersionConflict), status_of(VersionConflict)) == ("version-conflict", 409)
