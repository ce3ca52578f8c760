from streams.worker.fair_queue import FairQueue


def taken(waiting: FairQueue[str]) -> list[str]:
    found = []
    while (one := waiting.begin()) is not None:
        found.append(one)
    return found


def test_no_more_begin_than_there_are_slots() -> None:
    waiting: FairQueue[str] = FairQueue(2)
    for name in "abc":
        waiting.add(name, 1, 9)
    assert taken(waiting) == ["a", "b"]
    waiting.end(1)
    assert taken(waiting) == ["c"]


def test_a_stage_at_its_bound_does_not_hold_up_the_others() -> None:
    waiting: FairQueue[str] = FairQueue(4)
    waiting.add("a1", 1, 1)
    waiting.add("a2", 1, 1)
    waiting.add("b1", 2, 1)
    assert taken(waiting) == ["a1", "b1"]
    waiting.end(1)
    assert taken(waiting) == ["a2"]


def test_stages_take_turns() -> None:
    waiting: FairQueue[str] = FairQueue(4)
    for name in ("a1", "a2", "a3"):
        waiting.add(name, 1, 9)
    waiting.add("b1", 2, 9)
    assert taken(waiting) == ["a1", "b1", "a2", "a3"]
