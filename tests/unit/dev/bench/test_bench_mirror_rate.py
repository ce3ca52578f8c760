"""The rate of received records, whatever the poll that brought them."""

from streams.dev.bench.kafka_receiver import Received
from streams.dev.bench.mirror import receive_rate


def received(*times: float) -> list[Received]:
    return [Received(str(number), at=0.0, monotonic=time) for number, time in enumerate(times)]


def test_a_rate_counts_the_records_after_the_first() -> None:
    assert receive_rate(received(1.0, 1.5, 2.0)) == 2.0


def test_records_of_one_poll_have_a_rate() -> None:
    assert receive_rate(received(1.0, 1.0, 1.0)) == 2000.0


def test_one_record_has_no_rate() -> None:
    assert receive_rate(received(1.0)) == 0.0
