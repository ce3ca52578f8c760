"""Compiler of a document in NoETL's spelling into the model."""

from __future__ import annotations

from collections.abc import Mapping

from streams.events.model import Json
from streams.playbook.data_flow import with_readers
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Playbook, Step
from streams.playbook.noetl.control_flow import with_joins
from streams.playbook.noetl.grammar import DOCUMENT
from streams.playbook.noetl.inert_keys import report_inert_document
from streams.playbook.noetl.keychain import keychain_of
from streams.playbook.noetl.names import check_names
from streams.playbook.noetl.steps import step_of
from streams.playbook.noetl.tasks import StepSource
from streams.playbook.problem import Severity
from streams.playbook.projections import projections_of
from streams.playbook.shape import check_shape
from streams.playbook.spelling import Spelling
from streams.playbook.template import Constant, Template
from streams.playbook.template_compiler import NameRules
from streams.playbook.workbook import workbook_of
from streams.playbook.yaml_document import Authored, Document, as_list, as_mapping


def noetl_playbook(document: Document, top: Authored, clients: bool) -> Playbook:
    """Return the playbook of a document in NoETL's spelling; problems are in the document."""
    check_shape(document, DOCUMENT, dict(top), ())
    metadata = as_mapping(top.get("metadata"))
    sources = _sources(document, top)
    draft = PlaybookDraft(document, steps=tuple(sources), clients=clients)
    draft.name_rules = NameRules(lenient=True)
    report_inert_document(draft, top)
    workbook = workbook_of(draft, top.get("workbook"))
    pool = str(metadata.get("pool") or "default")
    names = frozenset(sources)
    steps = {
        name: step_of(draft, StepSource(step, ("workflow", place), workbook, names), pool)
        for name, (place, step) in sources.items()
    }
    if not steps:
        draft.report(("workflow",), "has no steps", at_key=True)
    first = _first(draft, top, steps)
    draft.name_rules = NameRules(lenient=True)
    workload, keychain = as_mapping(top.get("workload")), keychain_of(draft, top.get("keychain"))
    check_names(draft, top)
    path = str(metadata.get("path") or metadata.get("name") or "")
    if not path:
        draft.report(("metadata",), "the playbook has no path", "add metadata: {path: …}")
    return Playbook(
        name=str(metadata.get("name") or path),
        path=path,
        steps=with_readers(with_joins(steps, first), None),
        first=first,
        workload=workload,
        workload_templates=_workload_templates(draft, workload),
        keychain=keychain,
        spelling=Spelling.NOETL,
        pool=pool,
        projections=projections_of(document, top),
    )


def _sources(document: Document, top: Authored) -> dict[str, tuple[int, Authored]]:
    """Return each step with its position; a second one of the same name is reported."""
    found: dict[str, tuple[int, Authored]] = {}
    for place, step in enumerate(as_list(top.get("workflow"))):
        name = as_mapping(step).get("step")
        if not isinstance(name, str):
            continue
        if name in found:
            document.report(("workflow", place, "step"), f"step {name!r} is defined twice")
        else:
            found[name] = (place, as_mapping(step))
    return found


def _first(draft: PlaybookDraft, top: Authored, steps: Mapping[str, Step]) -> str:
    """Return the entry: `executor.spec.entry_step`, else `start`, else the first step."""
    executor = as_mapping(top.get("executor"))
    entry = as_mapping(executor.get("spec")).get("entry_step")
    if isinstance(entry, str) and entry in steps:
        return entry
    if entry is not None:
        at = ("executor", "spec", "entry_step")
        draft.report(at, f"there is no step {entry!r}", None, Severity.WARNING)
    return "start" if "start" in steps else next(iter(steps), "")


def _workload_templates(draft: PlaybookDraft, workload: Authored) -> dict[str, Template]:
    """Return the defaults that are templates: they are rendered when the execution reads them."""
    made: dict[str, Template] = {}
    for name, value in workload.items():
        if _has_template(value):
            template = draft.template(("workload", name), value)
            if not isinstance(template, Constant):
                made[name] = template
    return made


def _has_template(value: Json) -> bool:
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, dict):
        return any(map(_has_template, value.values()))
    return isinstance(value, list) and any(map(_has_template, value))
