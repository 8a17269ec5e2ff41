"""A server that goes on from a log is the one that wrote it, to the bit, wherever that was killed."""

import io
import itertools
from collections import Counter

import logged_server
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logged_server import METHODS, SCRIPTS, WORKERS, LoggedServer, recover
from planted_mistakes import MISTAKES, planted
from server_laws import memory_of

from edgebed.core.errors import EdgebedError, OwnCodeError
from edgebed.core.records import Refused, Update
from edgebed.roles.server.entries import Accepted, ModelHash, Snapshot, decode_entry
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.runtimes.log_file import HEAD_BYTES, read_records
from edgebed.wire.messages import Push, Ready

METHOD = st.sampled_from(sorted(METHODS))
ROUNDS = [("push", worker) for _ in range(6) for worker in WORKERS]


def run(method, script, **how):
    """A server to which all of this has happened."""
    logged = LoggedServer(method, **how)
    for what, worker in script:
        logged.do(what, worker)
    return logged


@given(method=METHOD, script=SCRIPTS, data=st.data())
def test_any_prefix_of_a_log_is_the_server_that_had_seen_so_much(method, script, data):
    """Cut anywhere, also within a record: all that it remembers, and each of its records once."""
    logged = LoggedServer(method)
    seen = {len(logged.content): (memory_of(logged.server), len(logged.records))}
    for what, worker in script:
        logged.do(what, worker)
        seen[len(logged.content)] = memory_of(logged.server), len(logged.records)
    cut = data.draw(st.integers(min(seen), len(logged.content)))
    whole = max(place + HEAD_BYTES + len(payload) for place, payload in read_records(io.BytesIO(logged.content[:cut])))

    found = recover(logged.content[:cut], method)

    if whole in seen:
        memory, num_records = seen[whole]
        assert memory_of(found.server) == memory
        assert [record for _, record in found.log.untold] == logged.records[:num_records]
    versions = [record.version for _, record in found.log.untold if isinstance(record, Update)]
    assert versions == list(range(1, found.server.aggregation.version + 1))
    assert found.replayed.updates == found.server.aggregation.version


@given(method=METHOD, script=SCRIPTS, bytes_min=st.integers(0, 20_000))
def test_where_snapshots_were_taken_changes_nothing(method, script, bytes_min):
    """A log begun anew after every event, or never: the same server comes of it."""
    logged = run(method, script, bytes_min=bytes_min)

    found = recover(logged.content, method)

    assert memory_of(found.server) == memory_of(logged.server)
    assert [record for _, record in found.log.untold] == logged.records
    assert found.log.tell(Ready(sender="server")).durable == len(logged.records)


@given(method=METHOD, script=SCRIPTS, kills=st.lists(st.integers(0, 12), max_size=4), bytes_min=st.integers(0, 20_000))
def test_nothing_that_was_answered_is_lost_or_counted_twice(method, script, kills, bytes_min):
    """Killed between any two effects: every push is applied or refused once, versions come in a row."""
    logged = LoggedServer(method, bytes_min=bytes_min)
    for k, (what, worker) in enumerate(script):
        if k % 4 == 3 and kills:
            logged.kill_in = kills.pop()
        logged.do(what, worker)
    logged.kill_in = None
    told = max((version for _, version in logged.told), default=0)
    logged.finish()

    seen = Counter((r.worker, r.step) for r in logged.records if isinstance(r, Update | Refused))
    updates = [record for record in logged.records if isinstance(record, Update)]
    open_pushes = {(worker, push.step) for worker, (push, _) in logged.pushes.items()}
    assert max(seen.values(), default=1) == 1
    assert [update.version for update in updates] == list(range(1, len(updates) + 1))
    assert len(updates) == logged.server.aggregation.version >= told
    every = {(worker, step) for worker in WORKERS for step in range(logged.steps[worker] + 1)}
    assert every - seen.keys() <= open_pushes | logged.given_up


@pytest.mark.parametrize("method", ["asgd", "adacomp", "sync", "ssp", "softsync", "plateau"])
@given(kills=st.lists(st.integers(0, 80), max_size=6), bytes_min=st.integers(0, 20_000))
def test_a_killed_server_comes_to_the_model_of_one_that_lived(method, kills, bytes_min):
    """Where pushes come in the same order, to the bit."""
    expected = run(method, ROUNDS).server.aggregation.theta
    logged = LoggedServer(method, bytes_min=bytes_min)
    for k, (what, worker) in enumerate(ROUNDS):
        logged.kill_in = next((kill % 4 for kill in kills if kill // 4 == k), None)
        logged.do(what, worker)

    np.testing.assert_array_equal(logged.server.aggregation.theta, expected)


def test_every_hundred_versions_the_log_has_a_hash_of_the_model():
    """With another one, going on is an error that names both."""
    logged = run("asgd", [("push", "edge-0")] * 250)
    entries = [decode_entry(payload)[0] for _, payload in read_records(io.BytesIO(logged.content))]
    hashes = [entry for entry in entries if isinstance(entry, ModelHash)]

    assert isinstance(entries[0], Snapshot)
    assert sum(isinstance(entry, Accepted) and isinstance(entry.message, Push) for entry in entries) == 250
    assert [entry.version for entry in hashes] == [100, 200]


def test_a_model_that_comes_to_another_hash_is_an_error():
    """As where a part of the user's own is not deterministic."""
    drawn = iter(range(10_000))

    class Forgetful(ParameterServer):
        def _push(self, entry, push, frames):
            self.aggregation.theta[0] += next(drawn)
            return super()._push(entry, push, frames)

    logged = run("asgd", [("push", "edge-0")] * 110, kind=Forgetful)

    with pytest.raises(EdgebedError, match=r"server\.log .* at byte [\d,]+: the model of update 100 has the hash"):
        recover(logged.content, "asgd", kind=Forgetful)


def test_damage_before_the_last_record_names_the_place():
    """And says what can be done."""
    content = bytearray(run("asgd", ROUNDS).content)
    content[len(content) // 2] ^= 1

    with pytest.raises(EdgebedError, match=r"server\.log of the server: damaged at byte [\d,]+.* --from-checkpoint"):
        recover(bytes(content), "asgd")


def test_what_an_aggregation_keeps_and_cannot_be_stored_is_named():
    """`validate` has refused it before; a server that got it later ends, rather than go on without a log."""
    server = logged_server.server_of("asgd")
    server.aggregation.draws = np.random.default_rng(1)

    with pytest.raises(OwnCodeError, match=r"^aggregation: draws: a Generator cannot be stored$"):
        logged_server.ServerLog(server, logged_server.FolderInMemory()).begin(0.0)


# --- mistakes that these laws must find --------------------------------------------------------------------------

SCRIPT = [
    *ROUNDS[:12], ("push", "edge-0"), ("later", "edge-0"), ("push", "edge-1"), ("later", "edge-1"),
    ("failed", "edge-1"), ("later", "edge-0"), ("push", "edge-0"), ("push", "edge-2"), ("join", "edge-1"),
    *ROUNDS[:4], ("join", "edge-0"), ("old", "edge-0"), *ROUNDS[:3],
    ("later", "edge-0"), ("again", "edge-0"), *ROUNDS[:4],
]  # fmt: skip


def check():
    """A fixed script with each method; killed after each of its effects, or within a new file; a log begun anew or not.

    The controller is told now and then, and hears what it has to say half the time. First comes what finds most.
    """
    for kill_in, bytes_min, method in itertools.product((2, 1, 0, 3, 4), (0, 1 << 20), METHODS):
        logged = LoggedServer(method, bytes_min=bytes_min)
        for k, (what, worker) in enumerate(SCRIPT):
            logged.kill_in = kill_in if k % 5 == 4 else None
            logged.folder.left = kill_in if k % 5 == 2 else logged.folder.left
            logged.do(what, worker)
            if k % 3 == 2:
                logged.report(is_answered=k % 2 == 1)
            found = recover(logged.content, method)
            assert memory_of(found.server) == memory_of(logged.server)
            assert [record for _, record in found.log.untold] == logged.records[found.log.told :]
            versions = [r.version for r in logged.records if isinstance(r, Update)]
            assert versions == list(range(1, logged.server.aggregation.version + 1))
            assert logged.server.aggregation.version >= max((v for _, v in logged.told), default=0)
            seen = Counter((r.worker, r.step) for r in logged.records if isinstance(r, Update | Refused))
            assert max(seen.values(), default=1) == 1
        logged.report()
        assert logged.journal == logged.records


def test_a_server_without_mistakes_passes_the_check():
    """So that what the next test finds are the mistakes."""
    check()


@pytest.mark.parametrize("mistake", [each for each in MISTAKES if each.alone], ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_found(mistake):
    """By what the laws above compare, with a fixed script."""
    with planted(mistake), pytest.raises((AssertionError, EdgebedError, KeyError)):
        check()
