"""Compilation of a subscription's `headers`."""

from __future__ import annotations

from streams.playbook.problem import Severity
from streams.playbook.yaml_document import Authored, Document, Path, as_list, as_mapping
from streams.subscription.model import Control, Directive, HeaderRules

_NEED_ALLOWED = (Control.PLAYBOOK, Control.POOL)
_AT: Path = ("spec", "headers")


def header_rules(document: Document, given: Authored) -> HeaderRules:
    """Return the rules; the shape of `given` was checked."""
    trace = as_mapping(given.get("trace"))
    propagates = trace.get("propagate", "none") == "w3c"
    baggage = tuple(str(key) for key in as_list(trace.get("baggage_allowlist")))
    if baggage and not propagates:
        what = "has no effect without `propagate: w3c`"
        at: Path = (*_AT, "trace", "baggage_allowlist")
        document.report(at, what, None, Severity.WARNING, at_key=True)
        baggage = ()
    is_normalized = bool(given.get("normalize", True))
    return HeaderRules(
        is_normalized=is_normalized,
        directives=tuple(
            _directive(document, as_mapping(one), (*_AT, "directives", place), is_normalized)
            for place, one in enumerate(as_list(given.get("directives")))
        ),
        is_passed_through=given.get("passthrough", "data") == "data",
        propagates_trace=propagates,
        baggage=baggage,
    )


def _directive(document: Document, given: Authored, at: Path, is_normalized: bool) -> Directive:
    controls = Control(str(given["controls"]))
    allowed = tuple(str(one) for one in as_list(given.get("allowed")))
    mapped = as_mapping(given["map"]) if "map" in given else None
    if controls in _NEED_ALLOWED and not allowed:
        what = f"{controls} needs `allowed`: a sender must not choose freely"
        document.report(at, what, "list the values")
    if controls is Control.PRIORITY:
        if mapped is None:
            document.report(at, "priority needs `map`", "map: {high: 1, low: 9}")
        what = "priority reaches the workload, but does not reorder work: a topic is read in order"
        document.report((*at, "controls"), what, None, Severity.WARNING)
    if mapped is not None and controls is not Control.PRIORITY:
        for word, value in mapped.items():
            if not isinstance(value, str):
                document.report((*at, "map", word), f"must be a text for {controls}")
    header = str(given["header"])
    return Directive(
        header=header.lower() if is_normalized else header,
        controls=controls,
        allowed=allowed,
        map=mapped,
    )
