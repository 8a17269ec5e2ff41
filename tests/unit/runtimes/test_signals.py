"""Ctrl-C and SIGTERM: what soon comes to its end is waited for once."""

import signal

import pytest

from edgebed.runtimes.signals import ENDING, ending_by_signal, finishing


def finished_in_spite_of(*numbers: int) -> list[str]:
    """What is done while these signals come, each of which ends what is not being finished."""
    done: list[str] = []

    def work() -> None:
        with ending_by_signal():
            with finishing():
                for number in numbers:
                    signal.raise_signal(number)
                done.append("finished")
            done.append("next")

    with pytest.raises(KeyboardInterrupt):
        work()
    return done


@pytest.mark.parametrize("number", ENDING)
def test_what_is_being_finished_comes_to_its_end_before_the_interruption(number: int) -> None:
    """And what would come after it does not."""
    assert finished_in_spite_of(number) == ["finished"]


def test_a_second_signal_waits_for_nothing() -> None:
    """Whoever asks twice does not want to wait."""
    assert finished_in_spite_of(signal.SIGINT, signal.SIGTERM) == []


def test_without_a_signal_nothing_is_raised_and_handlers_are_what_they_were() -> None:
    """Those of whoever is around it."""
    before = [signal.getsignal(number) for number in ENDING]
    with finishing():
        pass

    assert [signal.getsignal(number) for number in ENDING] == before
