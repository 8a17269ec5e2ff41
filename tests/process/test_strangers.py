"""Strangers at every socket of a live run: nothing that they send is read, and the run goes on as if they were not."""

from pathlib import Path

import zmq
from staged_trial import StagedTrial
from strangers import SCENARIO, attack, check
from waiting import until

from edgebed.runtimes.live.authentication import Credentials
from edgebed.runtimes.live.sockets import data_socket


def test_strangers_are_refused_before_a_frame_is_read_and_the_run_goes_on(tmp_path: Path) -> None:
    """Without the secret, with another one, with a worker's identity; raw bytes, half a handshake, half a message."""
    stage = StagedTrial(tmp_path, SCENARIO)
    series = stage.run(attack)

    check(stage, series)
    secret = stage.launcher.secret.encode()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and secret in path.read_bytes()] == []


def test_encrypted_data_is_for_those_alone_who_have_the_keys(tmp_path: Path) -> None:
    """With `security: curve` the password opens nothing any more, and a run trains as ever."""

    def try_the_password(stage: StagedTrial) -> None:
        until(lambda: stage.watch.state.updates > 20, "training", every_s=0.02)
        ready = stage.heart.members["server"].ready
        with zmq.Context() as context:
            for address in (ready.data_address, ready.management_address):
                with data_socket(context, zmq.DEALER, Credentials.of(stage.launcher.secret)) as client:
                    client.connect(address)
                    assert not client.poll(200, zmq.POLLOUT)

    series = StagedTrial(tmp_path, SCENARIO, "security=curve", "stop.updates=100").run(try_the_password)

    assert (series.outcome, len(series.updates)) == ("completed", 100)
    assert series.accounting.closes, series.accounting.problems
