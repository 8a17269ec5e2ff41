"""What a server's log took: journaled every ten seconds of training, and at the end."""

from collections.abc import Iterator

from edgebed.core.plan import Injection
from edgebed.core.records import Appended
from edgebed.runtimes.live.group_commit import GroupCommit
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.server_log import ServerLog

APPENDED_S = 10.0


class LogMeter:
    """Tells what the log and what waits for it have counted."""

    def __init__(self, log: ServerLog, commits: GroupCommit | None, life: Lifetime) -> None:
        self.log = log
        self.commits = commits
        self.life = life
        self.next_s = 0.0

    def inject(self, time_s: float, injection: Injection) -> None:
        """Take no notice: links do nothing to a log."""

    def read(self, now: float, began_s: float | None) -> Iterator[Appended]:
        """What was counted since the server started, if it is time to say so."""
        if began_s is None or (now < self.next_s and self.life.stop is None):
            return
        self.next_s = now + APPENDED_S - 0.5  # between two looks, which are a second apart
        log, commits = self.log, self.commits
        yield Appended(
            entries=log.appends,
            bytes=log.bytes,
            time_s=round(log.time_s, 6),
            syncs=commits.syncs if commits else 0,
            waited=commits.waited if commits else 0,
            waited_s=round(commits.waited_s, 6) if commits else 0.0,
            saved=log.replayed.saved if log.replayed else 0,
        )
