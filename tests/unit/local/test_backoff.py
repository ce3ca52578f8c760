from streams.local.backoff import FIRST_SECONDS, HEALTHY_SECONDS, LONGEST_SECONDS, Backoff


def test_early_ends_wait_longer_each_time_up_to_a_bound():
    backoff = Backoff()
    delays = [backoff.after_running(0.1) for _ in range(20)]
    assert delays[:3] == [FIRST_SECONDS, FIRST_SECONDS * 2, FIRST_SECONDS * 4]
    assert delays[-1] == LONGEST_SECONDS


def test_a_part_that_ran_well_starts_again_at_once():
    backoff = Backoff()
    for _ in range(10):
        backoff.after_running(0.1)
    assert backoff.after_running(HEALTHY_SECONDS) == FIRST_SECONDS
