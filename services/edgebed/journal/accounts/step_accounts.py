"""What became of every step that a layer shard has begun; pure, in one pass over a trial's journal.

    begun --> made, in the final model | rolled back | lost with its shard, with the server | unfinished | unexplained

A step is known by shard, history and mini-batch. The shard says which ones it has made and, at a history's beginning,
at its end and now and then between, how many it has begun. In a history a shard makes its steps in a row, so those that
it has not reported are missing; they need evidence. A backup proves that each shard has made all steps before it, and
so does the final model: what a killed shard had no time to report is taken to have been made then. Anything else that
it had not reported counts as neither begun nor made, with one exception, as for workers. A shard that is killed cannot
say which step it was at: if it had made all that it is known to have begun, it is taken to have been at the next one,
even if it waited for inputs; one more is begun, and lost with it. Nothing is assumed in the simulation, which reports
all.

A later history gives up what earlier ones had learnt beyond the step at which it begins: lost with the server if it is
of another incarnation of the server, else rolled back. Of what was not given up, the steps below the final model's
version, in its history and those that led there, are in the model; others were made too late.

The accounting closes if nothing is unexplained and all checks hold: no step was made twice, or in a history that the
shard had not begun; histories are those of the server, and begin where there is a backup of all; every shard has made
each of its steps of the final model once; nobody used more inputs or gradients than its neighbour says it sent.
"""

from collections import Counter
from collections.abc import Mapping

from edgebed.core import chance, records
from edgebed.journal.accounts.ledger import COUNTS, Accounting, Ledger, closed
from edgebed.journal.accounts.step_fates import End, Histories, ShardAccount, Span, every_of, fates, is_heard_out, until
from edgebed.journal.folds import Fold, on
from edgebed.roles.layerwise.histories import HISTORIES

FATES = COUNTS[1:]
"""What can become of a step, by the names of a ledger's counts; `begun` is their sum."""
LifeName = tuple[str, int]
"""A shard and its incarnation."""


class StepAccounting(Fold):
    """Takes the records of a journal, in its order, and makes the accounting of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.accounts: dict[tuple[str, int], ShardAccount] = {}
        """What each shard has reported, by shard and history."""
        self.every: dict[str, int] = {}
        """Mini-batches from one step to the next, by shard, for each that has reported."""
        self.began: dict[int, int] = {}
        """The step at which each history began that the server reported, in order."""
        self.backups: set[int] = set()
        """Steps of the backups that training can be resumed from."""
        self.proven: dict[int, int] = {}
        """The step of the last backup, by history."""
        self.members: dict[str, int] = {}
        """Nodes that have joined the server, with their incarnation."""
        self.problems: Counter[str] = Counter()

    # --- reading ------------------------------------------------------------------------------------------------

    @property
    def is_reported(self) -> bool:
        """Whether shards make steps, so that nobody pushes updates."""
        return bool(self.accounts or self.began or self.backups or self.problems)

    @on(records.Joined)
    def _joined(self, _: float, __: str, record: records.Joined) -> None:
        self.members[record.worker] = record.incarnation

    @on(records.Step)
    def _step(self, _: float, node: str, record: records.Step) -> None:
        account = self.accounts.get((node, record.history))
        if account is None or account.said is None:
            self._problem(f"{node}: made steps in a history that it had not begun")
            return
        step, every, made = record.step, self.every[node], account.made
        if made and step <= made[-1][1]:
            self._problem(f"{_name(account)}: made a step twice")
        elif step % every or step < account.said.since:
            self._problem(f"{_name(account)}: made steps that are not its own")
        elif made and step == made[-1][1] + every:
            made[-1][1] = step
        else:
            made.append([step, step])

    @on(records.Progress)
    def _progress(self, _: float, node: str, record: records.Progress) -> None:
        account = self._account(node, record.history, record.incarnation)
        if account.said and account.said.incarnation != record.incarnation:
            self._problem(f"{node}: two of its incarnations followed the same history")
        if record.made > record.begun or (account.made and account.made[-1][1] >= until(record, record.made)):
            self._problem(f"{_name(account)}: made steps that it had not begun")
        account.said, account.incarnation = record, record.incarnation
        self.every[node] = every_of(record)

    def _account(self, shard: str, history: int, incarnation: int) -> ShardAccount:
        key = shard, history
        if key not in self.accounts:
            self.accounts[key] = ShardAccount(shard, history, incarnation)
        return self.accounts[key]

    @on(records.Resumed)
    def _resumed(self, _: float, __: str, record: records.Resumed) -> None:
        newest = max(self.began, default=-HISTORIES)
        is_another_life = newest // HISTORIES < record.history // HISTORIES
        if record.history != (record.history // HISTORIES * HISTORIES if is_another_life else newest + 1):
            self._problem("the server began a history twice, or did not report one")
        if record.step and record.step not in self.backups and (not is_another_life or record.history == 0):
            self._problem(f"all shards resumed from step {record.step:,}, of which there was no backup")
        self.began[record.history] = record.step
        self.backups = {step for step in self.backups if step <= record.step}
        for shard, incarnation in self.members.items():
            self._account(shard, record.history, incarnation)

    @on(records.BackedUp)
    def _backed_up(self, _: float, __: str, record: records.BackedUp) -> None:
        history, step = record.history, record.step
        if history != max(self.began, default=-1):
            self._problem("the server backed up another history than the present one")
        elif step <= max(self.began[history], self.proven.get(history, 0)):
            self._problem("the server backed up a step twice")
        self.backups.add(step)
        self.proven[history] = max(step, self.proven.get(history, 0))

    def _problem(self, text: str) -> None:
        self.problems[text] += 1

    # --- closing ------------------------------------------------------------------------------------------------

    def close(
        self, ends: Mapping[LifeName, End], finished: records.Finished | None, *, is_cut: bool
    ) -> Accounting | None:
        """The accounting; None where no shard has reported its steps.

        `is_cut`: the journal breaks off, or the server's last records are missing.
        """
        if not self.every:
            return None
        histories = self._histories(finished, is_cut=is_cut)
        heard_of = self._last_heard_of()
        lives: dict[LifeName, Counter[str]] = {}
        for (shard, history), account in self.accounts.items():
            if shard in self.every and history in histories.began:
                life = shard, account.incarnation
                is_last = heard_of.get(life, history) <= history
                found = fates(account, self.every[shard], histories, ends.get(life, End()), is_last=is_last)
                lives.setdefault(life, Counter()).update(found)
        ledgers = tuple(_ledger(life, found) for life, found in sorted(lives.items()) if any(found.values()))
        self._check_messages(ends, heard_of)
        self._check_model(ledgers, finished)
        return closed(ledgers, self.problems)

    def _histories(self, finished: records.Finished | None, *, is_cut: bool) -> Histories:
        """Histories that the server reported, and those that it had no time to report."""
        began, newest_life = dict(self.began), max(self.began, default=0) // HISTORIES
        for (shard, history), account in self.accounts.items():
            if account.said and began.setdefault(history, account.said.since) != account.said.since:
                self._problem(f"{shard}: began a history at another step than the server said")
        untold = began.keys() - self.began.keys()
        if not is_cut and any(history // HISTORIES >= newest_life for history in untold):
            self._problem("shards followed a history that the server did not begin")
        proven, before = dict(self.proven), None
        for history in sorted(began):
            if before is not None and began[history] > max(began[before], proven.get(before, 0)):
                proven[before] = began[history]  # the server died before it reported that backup
            before = history
        if finished is None:
            return Histories(began, proven)
        model = finished.history, finished.version
        if finished.version and finished.history not in began:
            self._problem("the final model was made in a history that the server did not begin")
        proven[finished.history] = max(finished.version, proven.get(finished.history, 0))
        return Histories(began, proven, model)

    def _last_heard_of(self) -> dict[LifeName, int]:
        """The last history that each incarnation of a shard has reported."""
        found: dict[LifeName, int] = {}
        for (shard, history), account in self.accounts.items():
            if account.said:
                life = shard, account.incarnation
                found[life] = max(history, found.get(life, history))
        return found

    def _check_messages(self, ends: Mapping[LifeName, End], heard_of: Mapping[LifeName, int]) -> None:
        """Check that what was used had been sent, as far as the sender has reported everything."""

        def sent(account: ShardAccount) -> records.Progress | None:
            life = account.shard, account.incarnation
            is_last = heard_of.get(life) == account.history
            return account.said if is_heard_out(ends.get(life, End()), is_last=is_last) else None

        for (_, history), account in self.accounts.items():
            below = account.said and self.accounts.get((account.said.below, history))
            if not account.said or not below or not below.said:
                continue
            if (lower := sent(below)) and account.said.inputs_used > lower.outputs_sent:
                self._problem(f"{_name(account)}: used inputs that {_name(below)} had not sent")
            if (upper := sent(account)) and below.said.gradients_used > upper.gradients_sent:
                self._problem(f"{_name(below)}: used gradients that {_name(account)} had not sent")

    def _check_model(self, ledgers: tuple[Ledger, ...], finished: records.Finished | None) -> None:
        """Check that each shard has made each of its steps of the final model."""
        for shard, every in sorted(self.every.items()):
            own = [ledger for ledger in ledgers if ledger.worker == shard]
            unexplained, applied = (sum(getattr(each, name) for each in own) for name in ("unexplained", "applied"))
            due = applied if finished is None else Span(0, finished.version).count(every)
            if unexplained:
                self._problem(f"{shard}: {unexplained:,} of its steps are missing without a reason")
            elif applied != due:
                self._problem(f"{shard}: made {applied:,} steps of the final model, which has {due:,} of its own")


def _ledger(life: LifeName, found: Counter[str]) -> Ledger:
    shard, incarnation = life
    counts = {name: found[name] for name in FATES}
    return Ledger(worker=shard, incarnation=incarnation, begun=found.total(), refused={}, **counts)


def _name(account: ShardAccount) -> str:
    return chance.draw_name(account.shard, max(1, account.incarnation))
