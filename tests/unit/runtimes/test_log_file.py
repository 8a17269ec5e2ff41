"""The file of a log: what a kill, a power cut or a broken disk leaves of it, and what is then read."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logged_server import METHODS, SCRIPTS, LoggedServer, recover, server_of

from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.roles.events import Journal, Send
from edgebed.runtimes.live.group_commit import GroupCommit
from edgebed.runtimes.log_file import NAME, NEW, FolderInMemory, FolderOnDisk, LogFile, framed, read_records
from edgebed.runtimes.server_log import ServerLog
from edgebed.wire.messages import Model

PAYLOADS = st.lists(st.lists(st.binary(max_size=50), max_size=3), max_size=6)


def whole(payloads):
    """What a file of these records holds."""
    return b"".join(bytes(part) for payload in payloads for part in framed(payload))


def read(content):
    """The payloads in a file."""
    return [bytes(payload) for _, payload in read_records(content)]


@given(payloads=PAYLOADS, data=st.data())
def test_what_is_cut_off_is_the_last_record_alone(payloads, data):
    """Wherever a kill cut the file; nothing is read that was not written."""
    content = whole(payloads)
    cut = data.draw(st.integers(0, len(content)))
    sizes = [len(whole(payloads[:k])) for k in range(len(payloads) + 1)]

    expected = [b"".join(payload) for payload, end in zip(payloads, sizes[1:], strict=True) if end <= cut]
    assert read(content[:cut]) == expected
    if cut in sizes:
        assert read(content[:cut] + bytes(100)) == expected


@given(payloads=PAYLOADS.filter(bool), data=st.data())
def test_a_bit_that_differs_is_damage(payloads, data):
    """The error names the record's place; lengths are checked, too, so that no rest is taken for a cut one."""
    content = bytearray(whole(payloads))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))

    with pytest.raises(EdgebedError, match=r"^damaged at byte [\d,]+: "):
        read(bytes(content))


def test_a_real_file_is_written_and_replaced(tmp_path):
    """More buffers than a system call takes; the old file stays until the new one is whole."""
    disk = FolderOnDisk(tmp_path / "server-log")
    log = LogFile(disk, synced=True)
    log.begin([b"snapshot"])
    parts = [str(k).encode() for k in range(3000)]
    log.append(parts)
    log.sync()
    assert read(disk.read(NAME)) == [b"snapshot", b"".join(parts)]
    assert log.size == (tmp_path / "server-log" / NAME).stat().st_size

    disk.create(NEW)  # as a server leaves that is killed while it makes a snapshot
    log.begin([b"another"])
    log.append([b"entry"])
    log.close()
    log.close()

    assert read(disk.read(NAME)) == [b"another", b"entry"]
    assert [path.name for path in (tmp_path / "server-log").iterdir()] == [NAME]


def test_a_full_disk_is_an_error_that_says_what_to_do():
    """The server ends; the log stays readable."""
    log = LogFile(FolderOnDisk.__new__(FolderOnDisk))
    log.disk = FolderInMemory()
    log.begin([b"snapshot"])
    log.disk, log.file = FolderOnDisk.__new__(FolderOnDisk), os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(InfrastructureError, match="the server's log cannot be written: No space left on device; make"):
        log.append([b"entry"])
    log.close()


# --- power cuts -------------------------------------------------------------------------------------------------


class Recorder(FolderInMemory):
    """Writes down what is asked of it, with what others were told meanwhile."""

    def __init__(self):
        super().__init__()
        self.done = []

    def create(self, name):
        """Make a file."""
        file = super().create(name)
        self.done.append(("create", file, name))
        return file

    def write(self, file, buffers):
        """Append to a file."""
        self.done += [("write", file, bytes(each)) for each in buffers]
        super().write(file, buffers)

    def sync(self, file):
        """Sync a file."""
        self.done.append(("sync", file))

    def rename(self, name, to):
        """Rename a file."""
        self.done.append(("rename", name, to))
        super().rename(name, to)

    def sync_folder(self):
        """Sync the folder."""
        self.done.append(("sync-folder",))

    def close(self, file):
        """Nothing is asked of the disk."""


def after_power_cut(done, keeps_names):
    """The log after these operations, if the disk has of each file what was synced, of names what was, or all."""
    files, synced, names, synced_names = {}, {}, {}, {}
    for what, *rest in done:
        if what == "create":
            files[rest[0]], names[rest[1]] = b"", rest[0]
        elif what == "write":
            files[rest[0]] += rest[1]
        elif what == "sync":
            synced[rest[0]] = files[rest[0]]
        elif what == "rename":
            names[rest[1]] = names.pop(rest[0])
        elif what == "sync-folder":
            synced_names = dict(names)
    found = (names if keeps_names else synced_names).get(NAME)
    return None if found is None else synced.get(found, b"")


def after_kill(done):
    """The log after these operations, all of which the disk has."""
    disk = FolderInMemory()
    for what, *rest in done:
        if what == "create":
            assert disk.create(rest[1]) == rest[0]
        elif what == "write":
            disk.write(rest[0], [rest[1]])
        elif what == "rename":
            disk.rename(*rest)
    return disk.read(NAME)


class SyncedServer(LoggedServer):
    """A server that holds back what it says; the disk is synced when the script says so."""

    def _begin(self):
        self.server = server_of(self.method, durability="fsync")
        self.folder = Recorder()
        self.log = ServerLog(self.server, self.folder, bytes_min=self.bytes_min)
        self.log.begin(self.now)
        self.commits = GroupCommit(self.log)

    def carry_out(self, effect):
        """As the live shell does."""
        if not self.commits.hold(effect):
            self._say(effect)

    def _say(self, effect):
        if isinstance(effect, Send) and isinstance(effect.message, Model):
            self.folder.done.append(("told", effect.message.version))
        if isinstance(effect, Journal) and hasattr(effect.record, "version"):
            self.folder.done.append(("told", effect.record.version))
        super().carry_out(effect)

    def commit(self):
        """The thread has synced."""
        self.commits.commit()
        for effect in self.commits.released():
            self._say(effect)


@given(
    method=st.sampled_from(sorted(METHODS)), script=SCRIPTS, every=st.integers(1, 5), bytes_min=st.integers(0, 9_000),
    data=st.data(),
)  # fmt: skip
def test_after_a_power_cut_there_is_all_that_anybody_was_told(method, script, every, bytes_min, data):
    """Cut after any operation: whatever was not synced is gone, names or not; or a part of the last write is there."""
    server = SyncedServer(method, bytes_min=bytes_min)
    for k, (what, worker) in enumerate(script):
        server.do(what, worker)
        if k % every == 0:
            server.commit()
    os.close(server.commits.bell)
    done = server.folder.done
    cuts = [*data.draw(st.lists(st.integers(0, len(done)), max_size=6)), len(done)]

    for cut in cuts:
        told = max((rest[0] for what, *rest in done[:cut] if what == "told"), default=None)
        for content in (after_power_cut(done[:cut], True), after_power_cut(done[:cut], False), after_kill(done[:cut])):
            if told is not None:
                assert content is not None
                assert recover(content, method).server.aggregation.version >= told


def test_an_answer_before_the_sync_is_found():
    """So the test above can fail: a server in fsync mode that does not wait for the disk."""
    server = SyncedServer("asgd")
    server.commits.hold = lambda effect: False
    server.do("push", "edge-0")
    os.close(server.commits.bell)
    done = server.folder.done

    assert ("told", 1) in done
    assert recover(after_power_cut(done, keeps_names=True), "asgd").server.aggregation.version == 0
