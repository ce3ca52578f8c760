import pytest

from streams.local.errors import PortInUse, UnknownPort
from streams.local.ports import choose_ports


def choose(names, *, last=None, asked=None, taken=(), guesses=(1, 2, 3, 4, 5)):
    return choose_ports(
        names,
        last=last or {},
        requested=asked or {},
        is_free=lambda port: port not in taken,
        guesses=guesses,
    )


def test_last_times_port_is_taken_again_when_it_is_free():
    assert choose(["a"], last={"a": 77}) == {"a": 77}


def test_last_times_port_is_given_up_when_another_program_has_it():
    assert choose(["a"], last={"a": 77}, taken={77, 1}) == {"a": 2}


def test_no_two_listeners_get_the_same_port():
    assert choose(["a", "b"], last={"a": 7, "b": 7}, guesses=(7, 7, 8)) == {"a": 7, "b": 8}


def test_a_port_asked_for_wins_over_a_remembered_one():
    assert choose(["a", "b"], last={"a": 9}, asked={"b": 9}) == {"a": 1, "b": 9}


def test_a_port_asked_for_that_is_taken_is_refused_by_name():
    with pytest.raises(PortInUse, match=r"a: port 9 .* --port a="):
        choose(["a"], asked={"a": 9}, taken={9})


def test_zero_asks_for_any_free_port():
    assert choose(["a"], asked={"a": 0}) == {"a": 1}


def test_a_port_for_an_unknown_listener_is_refused():
    with pytest.raises(UnknownPort, match="known are a, b"):
        choose(["a", "b"], asked={"c": 9})
