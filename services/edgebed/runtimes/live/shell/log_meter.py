"""What a server's log took: journaled every second of training in which anything was appended, and at the end."""

from collections.abc import Iterator

from edgebed.core.planned.fault import Injection
from edgebed.core.records import Appended
from edgebed.runtimes.live.group_commit import GroupCommit
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.server_log import ServerLog


class LogMeter:
    """Tells what the log and what waits for it have counted."""

    def __init__(self, log: ServerLog, commits: GroupCommit | None, life: Lifetime) -> None:
        self.log = log
        self.commits = commits
        self.life = life
        self.since_s = life.now()
        """When the server began."""
        self.told = -1
        """Entries that were told of."""

    def inject(self, time_s: float, injection: Injection) -> None:
        """Take no notice: links do nothing to a log."""

    def read(self, now: float, began_s: float | None) -> Iterator[Appended]:
        """What was counted since the server started, unless nothing was appended since it was last told."""
        log, commits = self.log, self.commits
        if began_s is None or (log.appends == self.told and self.life.stop is None):
            return
        self.told = log.appends
        yield Appended(
            entries=log.appends,
            bytes=log.bytes,
            time_s=round(now - max(began_s, self.since_s), 6),
            append_s=round(log.append_s, 6),
            syncs=commits.syncs if commits else 0,
            waited=commits.waited if commits else 0,
            waited_s=round(commits.waited_s, 6) if commits else 0.0,
            saved=log.replayed.saved if log.replayed else 0,
        )
