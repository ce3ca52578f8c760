"""Compiler of a subscription's text into the model; collects all problems."""

from __future__ import annotations

from streams.playbook.problem import Problem, Severity
from streams.playbook.shape import check_shape
from streams.playbook.yaml_document import Document, as_mapping, read
from streams.subscription.draft import subscription_of
from streams.subscription.errors import BadSubscription
from streams.subscription.grammar import SUBSCRIPTION
from streams.subscription.model import Subscription


def is_subscription(text: str) -> bool:
    """Return whether a document declares `kind: Subscription`."""
    return as_mapping(read(text).value).get("kind") == "Subscription"


def parse_subscription(text: str, name: str = "subscription") -> Subscription:
    """Compile a subscription.

    Raises:
        BadSubscription: it has errors; `problems` has all of them.
    """
    made, problems = check_subscription(text)
    if made is None:
        raise BadSubscription(name, problems)
    return made


def check_subscription(text: str) -> tuple[Subscription | None, tuple[Problem, ...]]:
    """Compile a subscription and return it with all problems; None if one is an error."""
    document = read(text)
    made = _compiled(document)
    problems = tuple(sorted(document.problems, key=lambda one: (one.line, one.column)))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, problems
    return made, problems


def _compiled(document: Document) -> Subscription | None:
    if document.problems:
        return None
    if not isinstance(document.value, dict):
        hint = "a subscription begins with `apiVersion: noetl.io/v1`"
        document.report((), "is not a mapping", hint)
        return None
    check_shape(document, SUBSCRIPTION, document.value, ())
    # The rules below read values by their types, so they need a document of the right shape.
    if any(problem.severity is Severity.ERROR for problem in document.problems):
        return None
    return subscription_of(document, document.value)
