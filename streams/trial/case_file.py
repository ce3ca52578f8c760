"""Files of test cases: `name.test.yaml` beside the playbook `name.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streams.events.model import Json
from streams.playbook.shape import (
    Anything,
    Choice,
    Either,
    Fields,
    Items,
    Nothing,
    Shape,
    Text,
    check_shape,
)
from streams.playbook.yaml_document import Document, as_list, as_mapping, read
from streams.trial.errors import BadTestFile, BadTrial
from streams.trial.playbooks import SUFFIXES, read_text

STATUSES = ("COMPLETED", "PARTIAL", "FAILED", "CANCELLED")
_ROWS = Fields(
    "row expectation",
    {
        "query": Text("A SELECT, run after the playbook."),
        "auth": Text("The credential of its database."),
        "dsn": Text("The database, instead of a credential."),
        "kind": Choice(("postgres", "duckdb"), "The tool that runs it; postgres."),
        "database": Text("The file of a duckdb database."),
        "rows": Items(Anything(), "Its rows, in order; of each, at least these columns."),
    },
    required=("query", "rows"),
)
_EXPECT = Fields(
    "expectation",
    {
        "status": Choice(STATUSES, "The status of the execution; COMPLETED."),
        "result": Anything("The result; of a mapping, at least these keys."),
        "error": Text("A part of the error's message."),
        "steps": Items(Text(), "The steps entered, in order."),
        "rows": Items(_ROWS, "Rows in a database after the playbook."),
    },
)
_CASE = Fields(
    "test case",
    {
        "name": Text("What the case shows."),
        "given": Either((Fields("workload", {}, rest=Anything()), Nothing())),
        "mocks": Fields("mocks", {}, "Answers by step, or step.task.", rest=Anything()),
        "expect": _EXPECT,
    },
    required=("name", "expect"),
)
_FILE = Fields(
    "test file",
    {
        "playbook": Text("The playbook's file, relative to this one."),
        "with": Items(Text(), "Files or folders with playbooks that it calls."),
        "cases": Items(_CASE),
    },
    required=("cases",),
)
SHAPE: Shape = Either((Items(_CASE), _FILE))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsExpected:
    """Rows that a query must return after the run."""

    config: Mapping[str, Json]
    """The configuration of the tool that runs it."""
    rows: tuple[Json, ...]
    kind: str = "postgres"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """How a run must end; what is None is not compared."""

    status: str = "COMPLETED"
    result: Json = None
    has_result: bool = False
    error: str | None = None
    steps: tuple[str, ...] | None = None
    rows: tuple[RowsExpected, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One run of a playbook and its expected end."""

    __test__ = False

    name: str
    line: int
    workload: Mapping[str, Json] = field(default_factory=dict)
    mocks: Mapping[str, Json] = field(default_factory=dict)
    expect: Expectation = Expectation()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """The cases of one file, and the playbook they run."""

    file: Path
    playbook: Path
    given: tuple[Path, ...]
    cases: tuple[TestCase, ...]


def case_file_of(file: Path) -> Path:
    """Return the file of cases for a playbook, or the file itself if it has cases.

    Raises:
        BadTrial: there is none beside the playbook.
    """
    if _is_case_file(file):
        return file
    beside = [file.with_name(f"{file.stem}.test{suffix}") for suffix in SUFFIXES]
    for found in beside:
        if found.is_file():
            return found
    raise BadTrial(f"{file}: no test cases beside it; write {beside[0]}")


def read_cases(file: Path) -> CaseFile:
    """Read a file of cases.

    Raises:
        BadTrial: it cannot be read, or names a playbook that does not exist.
        BadTestFile: it is not valid; every problem is listed.
    """
    document = read(read_text(file))
    if not document.problems:
        check_shape(document, SHAPE, document.value, ())
    if document.problems:
        raise BadTestFile(str(file), [str(problem) for problem in document.problems])
    top = as_mapping(document.value)
    return CaseFile(
        file=file,
        playbook=_existing(file, str(top.get("playbook") or _playbook_name(file))),
        given=tuple(_existing(file, str(one)) for one in as_list(top.get("with"))),
        cases=tuple(_cases(document)),
    )


def _is_case_file(file: Path) -> bool:
    return file.suffix in SUFFIXES and file.stem.endswith(".test")


def _playbook_name(file: Path) -> str:
    return f"{file.stem.removesuffix('.test')}{file.suffix}"


def _existing(file: Path, name: str) -> Path:
    found = file.parent / name
    if not found.exists():
        raise BadTrial(f"{file}: {found} does not exist; name the playbook's file with `playbook`")
    return found


def _cases(document: Document) -> list[TestCase]:
    is_list = isinstance(document.value, list)
    cases = as_list(document.value if is_list else as_mapping(document.value).get("cases"))
    return [
        _case(as_mapping(one), document.line((place,) if is_list else ("cases", place)))
        for place, one in enumerate(cases)
    ]


def _case(value: dict[str, Json], line: int) -> TestCase:
    expect = as_mapping(value.get("expect"))
    steps = expect.get("steps")
    return TestCase(
        name=str(value["name"]),
        line=line,
        workload=as_mapping(value.get("given")),
        mocks=as_mapping(value.get("mocks")),
        expect=Expectation(
            status=str(expect.get("status") or "COMPLETED"),
            result=expect.get("result"),
            has_result="result" in expect,
            error=None if "error" not in expect else str(expect["error"]),
            steps=None if steps is None else tuple(str(one) for one in as_list(steps)),
            rows=tuple(_rows(as_mapping(one)) for one in as_list(expect.get("rows"))),
        ),
    )


def _rows(value: dict[str, Json]) -> RowsExpected:
    config = {key: one for key, one in value.items() if key not in ("rows", "kind")}
    kind = str(value.get("kind") or "postgres")
    return RowsExpected(config=config, rows=tuple(as_list(value["rows"])), kind=kind)
