"""Compiler of a playbook's text into the model; collects all problems."""

from __future__ import annotations

from streams.events.model import Json
from streams.playbook.control_flow import check_steps
from streams.playbook.data_flow import check_loops, check_scopes, with_readers
from streams.playbook.draft import PlaybookDraft, WorkflowSource
from streams.playbook.errors import BadPlaybook
from streams.playbook.grammar import PLAYBOOK
from streams.playbook.model import Playbook
from streams.playbook.noetl.parse import noetl_playbook
from streams.playbook.pools import check_pool
from streams.playbook.problem import Problem, Severity
from streams.playbook.projections import projections_of
from streams.playbook.shape import check_shape
from streams.playbook.sinks.sink_steps import with_sinks
from streams.playbook.spelling import Spelling
from streams.playbook.spelling_signs import spelling_of
from streams.playbook.steps import names_by_step, step_of
from streams.playbook.template import Constant, Template
from streams.playbook.unread_keys import report_unread_return
from streams.playbook.workbook import workbook_of
from streams.playbook.yaml_document import Authored, Document, Path, as_list, as_mapping, read


def parse(text: str, name: str = "playbook", *, clients: bool = True) -> Playbook:
    """Compile a playbook; without `clients` it may name packages that are not installed.

    Raises:
        BadPlaybook: it has errors; `problems` has all of them.
    """
    playbook, problems = check(text, clients=clients)
    if playbook is None:
        raise BadPlaybook(name, problems)
    return playbook


def check(text: str, *, clients: bool = True) -> tuple[Playbook | None, tuple[Problem, ...]]:
    """Compile a playbook and return it with all problems; None if one is an error."""
    document = read(text)
    top = document.value
    if not document.problems and not isinstance(top, dict):
        hint = "a playbook begins with `apiVersion: noetl.io/v2`"
        document.report((), "is not a mapping", hint)
    made = None
    if isinstance(top, dict):
        spelling, _ = spelling_of(top)
        if spelling is Spelling.NOETL:
            document = read(text, version="1.1")
            made = noetl_playbook(document, as_mapping(document.value), clients)
        else:
            made = _playbook(document, top, clients)
        _check_spelling(document, as_mapping(top.get("metadata")).get("spelling"), clients)
    problems = tuple(sorted(document.problems, key=lambda one: (one.line, one.column)))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, problems
    return made, problems


def _check_spelling(document: Document, chosen: Json, is_new: bool) -> None:
    if chosen is not None and chosen not in tuple(Spelling):
        severity, hint = Severity.ERROR if is_new else Severity.WARNING, ", ".join(Spelling)
        what = f"there is no spelling {chosen!r}"
        document.report(("metadata", "spelling"), what, f"there are {hint}", severity)


def describe_spelling(text: str) -> str:
    """Return how a document is read, and which construct decides it."""
    document = read(text)
    spelling, sign = spelling_of(as_mapping(document.value))
    whose = "NoETL's" if spelling is Spelling.NOETL else "the specs'"
    if sign is None:
        return f"read in {whose} spelling, the default"
    return f"read in {whose} spelling: line {document.line(sign.path)} has {sign.what}"


def _playbook(document: Document, top: Authored, clients: bool) -> Playbook:
    check_shape(document, PLAYBOOK, dict(top), ())
    metadata, credentials = as_mapping(top.get("metadata")), _credentials(top.get("credentials"))
    names = _step_names(document, as_list(top.get("workflow")))
    draft = PlaybookDraft(document, steps=tuple(names), credentials=credentials, clients=clients)
    source = _source(draft, top, names)
    check_pool(draft, ("metadata", "pool"), metadata.get("pool"))
    steps = {name: step_of(draft, source, name) for name in names}
    if not steps:
        draft.report(("workflow",), "has no steps", at_key=True)
    first = "start" if "start" in steps else next(iter(steps), "")
    if steps:
        check_steps(draft, steps, first, source.paths)
    returns = _returns(draft, top)
    check_loops(draft, steps, source.paths)
    check_scopes(draft, steps, source.paths)
    all_steps, last = with_sinks(draft, source, steps, returns)
    all_steps = with_readers(all_steps, returns)
    draft.steps = tuple(all_steps)  # templates can name the steps of sinks, too
    draft.check_names(names_by_step(draft, steps, source.paths))
    path = str(metadata.get("path") or top.get("path") or "")
    if not path:
        draft.report(("metadata",), "the playbook has no path", "add metadata: {path: …}")
    return Playbook(
        name=str(metadata.get("name") or top.get("name") or path),
        path=path,
        steps=all_steps,
        first=first,
        workload=as_mapping(top.get("workload")),
        returns=returns,
        credentials=credentials,
        pool=source.pool,
        last=last,
        projections=projections_of(document, top),
    )


def _source(draft: PlaybookDraft, top: Authored, names: dict[str, int]) -> WorkflowSource:
    workflow = as_list(top.get("workflow"))
    return WorkflowSource(
        top=top,
        steps={name: as_mapping(workflow[at]) for name, at in names.items()},
        paths={name: ("workflow", at) for name, at in names.items()},
        workbook=workbook_of(draft, top.get("workbook")),
        pool=str(as_mapping(top.get("metadata")).get("pool") or "default"),
    )


def _step_names(document: Document, workflow: list[Json]) -> dict[str, int]:
    """Return the steps with their positions; of two with one name, the first."""
    found: dict[str, int] = {}
    for place, step in enumerate(workflow):
        name = step.get("step") if isinstance(step, dict) else None
        if isinstance(name, str) and found.setdefault(name, place) != place:
            path: Path = ("workflow", place, "step")
            document.report(path, f"step {name!r} is defined twice")
    return found


def _credentials(value: Json) -> dict[str, str]:
    if isinstance(value, dict):
        return {alias: str(name) for alias, name in value.items()}
    found = {}
    for item in as_list(value):
        if isinstance(item, str):
            found[item] = item
        elif isinstance(item, dict) and isinstance(name := item.get("name"), str):
            found[str(item.get("as", name))] = name
    return found


def _returns(draft: PlaybookDraft, top: Authored) -> Template | None:
    value = top.get("return")
    if value is None:
        return None
    made = draft.template(("return",), value)
    if isinstance(value, dict):
        report_unread_return(draft, value)
    if (isinstance(value, dict) and not {"status", "data"} <= value.keys()) or isinstance(
        made, Constant
    ):
        what = "it has no envelope, so it is wrapped as {status, data, meta}"
        draft.report(("return",), what, None, Severity.NOTE, at_key=True)
    return made
