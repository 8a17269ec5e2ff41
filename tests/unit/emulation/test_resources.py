"""The readers of /proc, cgroups and network interfaces, on trees of plain files and on this very process."""

import os
import socket
from pathlib import Path

import numpy as np
import psutil
import pytest

from edgebed.core.errors import InfrastructureError
from edgebed.emulation.resources import (
    CgroupUsage,
    InterfaceBytes,
    cgroup_folders,
    cgroup_usage,
    interface_of,
    private_bytes,
    process_usage,
    throttled_s,
)
from edgebed.metrics.resources import PRIVATE_S, ResourceCollector

V2 = {
    "cpu.stat": "usage_usec 2500000\nuser_usec 2000000\nnr_periods 40\nnr_throttled 10\nthrottled_usec 1500000",
    "cpu.max": "50000 100000",
    "memory.current": "104857600",
    "memory.peak": "209715200",
    "memory.max": "536870912",
    "memory.stat": "anon 1\nfile 2\ninactive_file 4857600",
    "memory.events": "low 0\noom 1\noom_kill 1",
}
V1 = {
    "cpu/box/cpu.stat": "nr_periods 40\nnr_throttled 10\nthrottled_time 1500000000",
    "cpu/box/cpu.cfs_quota_us": "50000",
    "cpu/box/cpu.cfs_period_us": "100000",
    "cpuacct/box/cpuacct.usage": "2500000000",
    "memory/box/memory.usage_in_bytes": "104857600",
    "memory/box/memory.max_usage_in_bytes": "209715200",
    "memory/box/memory.limit_in_bytes": "536870912",
    "memory/box/memory.stat": "cache 3\ntotal_inactive_file 4857600",
    "memory/box/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1",
}
EXPECTED = CgroupUsage(
    cpu_s=2.5, cpu_limit_cores=0.5, cpu_period_us=100_000, periods=40, throttled_periods=10, throttled_s=1.5,
    working_set_bytes=100_000_000, peak_bytes=209_715_200, memory_limit_bytes=536_870_912, oom_kills=1,
)  # fmt: skip


def write(root: Path, files: dict[str, str]) -> None:
    """Create files with their folders below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="ascii")


def version_2(root: Path, path: str, files: dict[str, str]) -> None:
    """A machine with cgroup version 2 on which this process is in the cgroup `path`."""
    write(root, {"proc/self/cgroup": f"0::{path}"})
    write(root / "sys/fs/cgroup" / path.lstrip("/"), files)


def version_1(root: Path, files: dict[str, str]) -> None:
    """A machine with cgroup version 1 on which this process is in the cgroup /box of every controller."""
    write(root, {"proc/self/cgroup": "4:memory:/box\n3:cpu,cpuacct:/box\n1:name=systemd:/user\n0::/user"})
    write(root / "sys/fs/cgroup", files)


def test_version_2_is_read(tmp_path):
    """Microseconds become seconds, quota over period cores, and inactive file cache is no working set."""
    version_2(tmp_path, "/box/node", V2)

    assert cgroup_usage(root=tmp_path) == EXPECTED
    assert throttled_s(cgroup_folders(None, tmp_path)) == EXPECTED.throttled_s


def test_version_1_is_read(tmp_path):
    """The same facts in the older files give the same account, whatever systemd keeps in a version 2 tree beside."""
    version_1(tmp_path, V1)

    assert cgroup_usage(root=tmp_path) == EXPECTED
    assert throttled_s(cgroup_folders(None, tmp_path)) == EXPECTED.throttled_s
    assert throttled_s({}) is None


def test_a_container_finds_its_cgroup_at_the_mount(tmp_path):
    """Where the path is the host's and not there, the files at the mount are the container's own."""
    write(tmp_path, {"proc/self/cgroup": "0::/docker/4711"})
    write(tmp_path / "sys/fs/cgroup", V2)

    assert cgroup_usage(root=tmp_path) == EXPECTED


def test_version_2_without_caps_has_no_limits(tmp_path):
    """`max` is no number of cores or bytes."""
    version_2(tmp_path, "/", V2 | {"cpu.max": "max 100000", "memory.max": "max"})
    usage = cgroup_usage(root=tmp_path)

    assert (usage.cpu_limit_cores, usage.memory_limit_bytes) == (None, None)


def test_version_1_without_caps_has_no_limits(tmp_path):
    """Neither -1 nor a number near 2**63 is a limit."""
    caps = {"cpu/box/cpu.cfs_quota_us": "-1", "memory/box/memory.limit_in_bytes": "9223372036854771712"}
    version_1(tmp_path, V1 | caps)
    usage = cgroup_usage(root=tmp_path)

    assert (usage.cpu_limit_cores, usage.memory_limit_bytes) == (None, None)


@pytest.mark.parametrize("missing", sorted(V2))
def test_a_missing_file_of_version_2_leaves_the_rest(tmp_path, missing):
    """Older kernels lack some; what those hold is None, or taken as 0 for the cache, and nothing else changes."""
    version_2(tmp_path, "/box", {name: text for name, text in V2.items() if name != missing})
    usage = cgroup_usage(root=tmp_path)
    changed = {name for name in vars(usage) if getattr(usage, name) != getattr(EXPECTED, name)}

    assert len(changed) == {"cpu.stat": 4, "cpu.max": 2}.get(missing, 1)
    assert all(getattr(usage, name) is None for name in changed) == (missing != "memory.stat")


@pytest.mark.parametrize("missing", sorted(V1))
def test_a_missing_file_of_version_1_leaves_the_rest(tmp_path, missing):
    """As for version 2."""
    version_1(tmp_path, {name: text for name, text in V1.items() if name != missing})
    usage = cgroup_usage(root=tmp_path)
    changed = {name for name in vars(usage) if getattr(usage, name) != getattr(EXPECTED, name)}

    assert len(changed) == {"cpu.stat": 3, "cpu.cfs_quota_us": 2, "cpu.cfs_period_us": 2}.get(Path(missing).name, 1)


def test_a_machine_without_cgroups_tells_nothing(tmp_path):
    """All None, and no error."""
    assert cgroup_usage(root=tmp_path) == CgroupUsage()


def test_nonsense_in_the_files_is_no_number(tmp_path):
    """A file that is not what it should be is as good as missing."""
    version_2(tmp_path, "/box", dict.fromkeys(V2, "?? nonsense\n\n-"))

    assert cgroup_usage(root=tmp_path) == CgroupUsage()


def test_this_process_uses_cpu_memory_and_a_thread():
    """The account agrees with what the process knows about itself."""
    usage = process_usage()
    own = private_bytes(os.getpid())
    assert usage is not None
    assert own is not None

    assert usage.cpu_s <= sum(os.times()[:2]) + 0.05
    assert usage.cpu_s > 0
    assert 1_000_000 < own <= usage.resident_bytes * 1.1
    assert usage.threads >= 1


def test_private_memory_is_read_seldom():
    """It takes milliseconds; what is shown may be half a minute old, and no older."""
    now_s = [0.0]
    collector = ResourceCollector(lambda: now_s[0])

    def shown() -> float:
        name = "edgebed_process_private_memory_bytes"
        (family,) = [each for each in collector.collect() if each.name == name]
        return family.samples[0].value

    before = shown()
    held = np.ones(100_000_000, np.uint8)
    now_s[0] = PRIVATE_S - 1.0
    soon = shown()
    now_s[0] = PRIVATE_S
    later = shown()

    assert soon == before > 1_000_000
    assert later > before + 0.9 * held.nbytes


def test_a_process_that_is_gone_has_no_usage():
    """None, not an error: it may end while it is looked at."""
    gone = next(pid for pid in range(4_000_000, 3_000_000, -1) if not psutil.pid_exists(pid))

    assert process_usage(gone) is None


def test_the_loopback_addresses_belong_to_lo():
    """All of 127.0.0.0/8, not only the address that the interface names."""
    loopback = interface_of("127.0.0.1")

    assert interface_of("127.3.2.1") == loopback
    assert "127.0.0.1" in [entry.address for entry in psutil.net_if_addrs()[loopback]]


def test_an_address_that_nobody_has_names_those_there_are():
    """The message lists this machine's addresses, so that the right one can be copied."""
    with pytest.raises(InfrastructureError, match=r"203\.0\.113\.7.*127\.0\.0\.1 \("):
        interface_of("203.0.113.7")


def test_interface_bytes_count_from_the_start(tmp_path):
    """What crossed the interface before is none of this run's."""
    folder = tmp_path / "sys/class/net" / interface_of("127.0.0.1") / "statistics"
    write(folder, {"rx_bytes": "1000", "tx_bytes": "50"})
    counter = InterfaceBytes.at("127.0.0.1", root=tmp_path)
    write(folder, {"rx_bytes": "1700", "tx_bytes": "80"})

    assert counter.read() == (700, 30)


def test_interface_bytes_of_a_vanished_interface_are_unknown(tmp_path):
    """None, not 0: nothing is known."""
    assert InterfaceBytes.at("127.0.0.1", root=tmp_path).read() == (None, None)


def test_interface_bytes_grow_with_real_traffic():
    """A datagram over loopback is at least its own size, once out and once in."""
    counter = InterfaceBytes.at("127.0.0.1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink, socket.socket(type=socket.SOCK_DGRAM) as source:
        sink.bind(("127.0.0.1", 0))
        source.sendto(bytes(10_000), sink.getsockname())
        sink.recv(10_000)
    received, sent = counter.read()
    assert received is not None
    assert sent is not None

    assert received >= 10_000
    assert sent >= 10_000
