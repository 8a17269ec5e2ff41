"""What a node uses, window by window: waiting of many threads, and cores that nobody capped."""

from contextlib import closing

import pytest

from edgebed.core.errors import InfrastructureError
from edgebed.core.recorded.measured import Usage
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.namespaces import Home
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.resources import CgroupUsage
from edgebed.emulation.witness import usage
from edgebed.emulation.witness.usage import Reading, Waiting, add_window
from edgebed.emulation.witness.witness import ProgramUsage, WitnessRequest

NOTHING = Usage(time_s=0.0, cpu_s=0.0)


@pytest.mark.parametrize(
    ("cpus", "cpu_s", "waited_s", "starved_s"),
    [
        (None, 2.0, 18.0, 0.0),
        (None, 1.9, 18.0, 0.1),
        (None, 1.0, 5.0, 1.0),
        (None, 1.0, 0.2, 0.2),
        (0.5, 0.4, 9.0, 0.2),
    ],
    ids=["all cores", "most of them", "half of them", "one that waited a little", "capped"],
)
def test_threads_that_wait_for_each_other_do_not_starve(cpus, cpu_s, waited_s, starved_s):
    """Without a cap all of a machine's cores are promised, and what many threads of one node share is not lost."""
    before, after = (Reading(t, cpu_s * t, waited_s * t, 0.0, 0.0, 0) for t in (0.0, 1.0))

    assert add_window(NOTHING, cpus, before, after, cores=2.0).starved_s == pytest.approx(starved_s)


def test_what_a_thread_waited_is_kept_when_it_has_ended(tmp_path):
    """And when another has its number."""
    shown = {"a": 5_000_000_000, "b": 1_000_000_000}
    waiting = Waiting(lambda: [str(tmp_path / name) for name in [*shown, "gone"]])

    def read():
        for name, waited_ns in shown.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "schedstat").write_text(f"123 {waited_ns} 7\n")
        return waiting.read()

    assert read() == 6.0
    del shown["a"]
    assert read() == 6.0
    shown |= {"a": 2_000_000_000, "b": 4_000_000_000}
    assert read() == 11.0
    shown["a"] = 500_000_000
    assert read() == 11.5


def test_a_kernel_that_does_not_count_says_nothing(tmp_path):
    """Rather than that nobody waited."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/schedstat").write_text("")

    assert Waiting(lambda: [str(tmp_path / "a")]).read() is None


@pytest.fixture
def program(tmp_path):
    """What counts a program whose cgroup is an empty folder."""
    folder = tmp_path / "program"
    folder.mkdir()
    home = Home(namespace="", address="127.0.0.1")
    request = WitnessRequest(node="home-0", home=home, cgroup={"": str(folder)}, names={})
    with closing(LinkReader(home.address)) as reader:
        yield ProgramUsage(request, EffectiveLink(request.link), reader)


def test_a_cgroup_that_goes_while_it_is_read_is_that_of_a_program_that_has_ended(program, monkeypatch):
    """Nothing is known of it."""

    def goes(folders):
        folders[""].rmdir()
        return CgroupUsage()

    monkeypatch.setattr(usage, "account", goes)

    assert list(program.read(1.5, 0.0)) == []
    program.end()
    assert list(program.read(2.0, 0.0)) == []


def test_a_cgroup_that_is_there_and_counts_no_cpu_time_is_refused(program):
    """By its folder."""
    with pytest.raises(InfrastructureError, match=r"does not count the CPU time of .*program"):
        list(program.read(1.0, 0.0))


def test_a_life_without_a_second_look_tells_what_passed_its_link(program, monkeypatch):
    """Its cgroup was there once, and gone at the end."""
    monkeypatch.setattr(usage, "account", lambda _folders: CgroupUsage(cpu_s=0.5))
    assert list(program.read(1.0, 0.0)) == []
    program.folders[""].rmdir()
    program.end()
    (told,) = program.read(1.4, 0.0)

    assert (told.time_s, told.cpu_s, told.uplink_bytes is None) == (0.4, 0.0, False)
