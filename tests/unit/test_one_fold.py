"""There is one fold: what projects live is what replays, and nothing else makes rows of events."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from streams.projector.built_in import BUILT_IN, BuiltInProjection
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.core import absorb
from streams.projector.digests import ALL, KIND_OF
from streams.projector.rows import ResultEndRow, Row
from streams.replay.state import PROJECTIONS as REPLAYED
from tests.unit.test_import_rules import ROOT, of

FOLD = "streams.execution.evolve.evolve_typed"
HANDLERS = ("fold_endings", "fold_loops", "fold_steps")


def users_of(name: str) -> set[str]:
    """Return the files of the package that import a module or a name of one."""
    paths = (ROOT / "streams").rglob("*.py")
    return {path.relative_to(ROOT / "streams").as_posix() for path in paths if name in of(path)}


def test_only_the_projector_core_folds_events_into_rows() -> None:
    assert users_of(FOLD) == {"projector/core.py"}
    assert users_of("streams.projector.shapes") == {"projector/core.py"}


def test_only_the_fold_uses_what_each_event_changes() -> None:
    for handlers in HANDLERS:
        assert users_of(f"streams.execution.{handlers}") == {"execution/evolve.py"}


def test_live_projectors_and_replay_absorb_with_the_same_function() -> None:
    users = users_of("streams.projector.core.absorb")
    assert {"projector/views.py", "replay/state.py"} <= users
    folding = {one for one in users_of("streams.execution.evolve") if one.startswith("replay/")}
    assert folding == set()


def test_business_projections_have_one_fold_that_projects_live_builds_and_replays() -> None:
    core = "streams.projector.business.core"
    assert users_of(f"{core}.ExecutionFold") == {"projector/business/fold.py", "replay/business.py"}
    assert users_of(f"{core}.fold_rows") == {"projector/business/source.py"}
    builders = {"projector/business/rebuilt.py", "projector/business/shadow/build.py"}
    assert builders <= users_of("streams.projector.business.fold.BusinessFolds")


def test_every_row_that_is_projected_belongs_to_a_declared_projection() -> None:
    others = {BusinessStateRow, BusinessProgressRow, ResultEndRow}  # the last one changes results

    assert {one.row for one in BUILT_IN} == set(get_args(Row)) - others
    assert len({one.name for one in BUILT_IN}) == len(BUILT_IN)
    assert {*REPLAYED} - {ALL} <= {one.name for one in BUILT_IN}


def test_the_rows_of_executions_are_declared_with_the_fold_that_replays() -> None:
    others = {one.name for one in BUILT_IN if one.fold is not absorb}

    assert others == {"frame_output", "snapshot", "catalog"}
    assert {*KIND_OF.values()} <= {one.name for one in BUILT_IN} - others


@pytest.mark.parametrize("projection", BUILT_IN, ids=lambda one: one.name)
def test_the_key_and_column_of_a_declared_projection_exist(projection: BuiltInProjection) -> None:
    columns = {one.name for one in fields(projection.row)}

    assert {*projection.key} <= columns
    assert projection.column is None or projection.column in columns
