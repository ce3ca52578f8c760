"""There is one fold: what projects live is what replays, and nothing else makes rows of events."""

from __future__ import annotations

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
