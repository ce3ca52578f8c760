"""The block `projections:` of a playbook: what it declares, and what the check refuses."""

from __future__ import annotations

import pytest

from streams.playbook.declarations import Aggregate, Source
from streams.playbook.parse import check
from streams.playbook.projections import declaration_from
from streams.projector.business.declared import declarations_of

SPEC = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {path: examples/load}
workflow:
  - step: load
    loop: {in: [1, 2], iterator: row}
    tool: {kind: noop}
    next: done
  - step: done
    tool: {kind: noop}
"""
NOETL = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: load, path: examples/load}
workflow:
  - step: load
    loop: {in: "{{ workload.items }}", iterator: row}
    tool: {kind: python, code: "result = {}"}
    next: {spec: {mode: exclusive}, arcs: [{step: done}]}
  - step: done
    tool: {kind: python, code: "result = {}"}
"""
BLOCK = """\
projections:
  - name: patients
    version: 2
    source: {step: load}
    key: [facility, ward]
    aggregates: {rows: {count: "*"}, latest: {last: score}}
    where: {kind: mds}
"""


@pytest.mark.parametrize("text", [SPEC, NOETL], ids=["specs", "noetl"])
def test_both_spellings_declare_the_same(text: str) -> None:
    playbook, problems = check(text + BLOCK)

    assert playbook is not None, problems
    (made,) = playbook.projections
    assert (made.name, made.version, made.source) == ("patients", 2, Source("step", "load"))
    assert made.aggregates == (
        Aggregate("rows", "count", "*"),
        Aggregate("latest", "last", "score"),
    )
    assert made.where == {"kind": ("mds",)}
    assert made.columns == {"facility", "ward", "score", "kind"}
    assert declarations_of(text + BLOCK) == playbook.projections
    assert declaration_from(made.to_json()) == made


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("step: load}", "step: lod}"), "14:20: error: projections[0].source.step: there is no"),
        (("step: load}", "step: done}"), "step 'done' returns no rows (use a step with `loop`"),
        (("step: load}", "event: frame.comitted}"), "did you mean 'frame.committed'?"),
        (("step: load}", "event: catalog.retired}"), "is not an event of an execution"),
        (("step: load}", "event: frame.committed}"), "has no field 'facility'"),
        (("{step: load}", "{step: load, event: x}"), "needs either `step` or `event`"),
        (("    key: [", "    keys: ["), "15:5: error: projections[0].keys: unknown key 'keys'"),
        (("[facility, ward]", "[]"), "projections[0].key: needs 1 to 8 columns"),
        (("[facility, ward]", "[ward, ward]"), "names a column twice"),
        (("{last: score}", "{median: score}"), "latest.median: unknown key 'median'"),
        (("{last: score}", "{last: score, min: score}"), "needs one of count, sum, min, max"),
        (("{last: score}", "{sum: '*'}"), "sum needs a column, not '*'"),
        (("latest:", "Latest-1:"), "'Latest-1' is not a valid name"),
        (("name: patients", "name: Patients"), "is not a valid name of a projection"),
        (("version: 2", "version: 0"), "should be a whole number from 1"),
        (("kind: mds", "kind: {a: 1}"), "is compared with texts, numbers"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_at_their_places(change: tuple[str, str], problem: str) -> None:
    assert change[0] in BLOCK
    playbook, problems = check(SPEC + BLOCK.replace(*change))

    assert playbook is None
    assert any(problem in str(one) for one in problems), "\n".join(map(str, problems))


def test_a_name_is_declared_once() -> None:
    again = BLOCK.removeprefix("projections:\n")
    _, problems = check(SPEC + BLOCK + again)
    assert [one.message for one in problems] == ["projection 'patients' is declared twice"]


def test_an_event_is_a_source_without_a_loop() -> None:
    text = SPEC + BLOCK.replace("{step: load}", "{event: frame.committed}")
    text = text.replace("[facility, ward]", "node_name").replace("score", "rows")
    playbook, problems = check(text.replace("    where: {kind: mds}\n", ""))
    assert playbook is not None, problems
    assert playbook.projections[0].source == Source("event", "frame.committed")
