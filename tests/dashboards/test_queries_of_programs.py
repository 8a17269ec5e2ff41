"""The dashboard of programs: a real Prometheus is asked, about a run of programs that is replayed into it."""

from boards import unanswered
from program_runs import finished_run
from real_prometheus import require_tools, showing

from edgebed.running.replay import read_again


def test_every_query_is_answered_with_data(dashboards, tmp_path) -> None:
    """As Grafana asks it, over the time of the run or at its end; marks of faults are those of all dashboards."""
    require_tools()
    run = finished_run(tmp_path, seed=1)
    again = read_again(run, (), 5.0)
    (tmp_path / "prometheus").mkdir()
    with showing(tmp_path / "prometheus", again.store) as prometheus:
        empty = unanswered(prometheus, [dashboards["programs"]], again.begin_s, again.end_s, run=run.folder.name)

    assert [title for title, _ in empty if title != "mark"] == []
