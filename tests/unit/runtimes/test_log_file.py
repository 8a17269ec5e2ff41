"""The file of a log: what a kill or a broken disk leaves of it, and what is then read."""

import io
import os
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.runtimes.log_file import NAME, FolderInMemory, FolderOnDisk, LogFile, framed, read_records

PAYLOADS = st.lists(st.lists(st.binary(max_size=50), max_size=3), max_size=6)


def records_of(payloads):
    """The records of a file, each as it is in there."""
    made, crc = [], 0
    for payload in payloads:
        record, crc = framed(payload, crc)
        made.append(b"".join(map(bytes, record)))
    return made


def whole(payloads):
    """What a file of these records holds."""
    return b"".join(records_of(payloads))


def read(content):
    """The payloads in a file."""
    return [bytes(payload) for _, payload in read_records(io.BytesIO(content))]


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


@given(
    payloads=st.lists(st.lists(st.binary(min_size=1, max_size=50), min_size=1), min_size=2, max_size=6), data=st.data()
)
def test_a_record_that_is_missing_or_elsewhere_is_damage(payloads, data):
    """Though each is whole: no entry is done that was made on another model."""
    made = records_of(payloads)
    first = data.draw(st.integers(0, len(made) - 2))
    second = data.draw(st.integers(first + 1, len(made) - 1))
    swapped = [*made]
    swapped[first], swapped[second] = made[second], made[first]
    missing = made[:first] + made[first + 1 :]

    for content in (swapped, missing):
        if content not in (made, made[:-1]):
            with pytest.raises(EdgebedError, match=r"^damaged at byte [\d,]+: .* or one before it is missing"):
                read(b"".join(content))


def test_a_real_file_is_written_and_replaced(tmp_path):
    """More buffers than a system call takes; the old file stays until the new one is whole."""
    disk = FolderOnDisk(tmp_path / "server-log")
    log = LogFile(disk, synced=True)
    log.begin([b"snapshot"])
    parts = [str(k).encode() for k in range(3000)]
    log.append(parts)
    log.sync()
    assert read((tmp_path / "server-log" / NAME).read_bytes()) == [b"snapshot", b"".join(parts)]
    assert log.size == (tmp_path / "server-log" / NAME).stat().st_size

    (tmp_path / "server-log" / f".{NAME}.left").write_bytes(b"half")  # of a server that was killed at its snapshot
    log.begin([b"another"])
    log.append([b"entry"])
    log.close()
    log.close()

    assert read((tmp_path / "server-log" / NAME).read_bytes()) == [b"another", b"entry"]
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


def test_a_log_is_read_one_record_at_a_time(tmp_path):
    """However large it is, one that is damaged at its very end included."""
    crc = 0
    with (tmp_path / NAME).open("wb") as file:
        for _ in range(50):
            record, crc = framed([bytes(1_000_000)], crc)
            file.writelines(record)
        file.write(bytes(20_000_000))
    tracemalloc.start()
    with (tmp_path / NAME).open("rb") as file:
        assert sum(len(payload) for _, payload in read_records(file)) == 50_000_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 5_000_000
