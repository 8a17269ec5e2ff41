"""A fleet whose workers and server die, freeze and lose messages at random; it knows what became of each update."""

from collections import Counter

from edgebed.core import records

WORKERS = ("edge-0", "edge-1", "edge-2")


class Buffered:
    """What a node has written and not yet reported; it dies with the node."""

    def __init__(self, fleet, name, incarnation):
        self.fleet, self.name, self.incarnation = fleet, name, incarnation
        self.unreported = []

    def write(self, record):
        """Keep a record for the next report."""
        self.unreported.append((self.fleet.t, self.name, record))

    def report(self):
        """The records reach the journal."""
        self.fleet.journal += self.unreported
        self.unreported = []


class Server(Buffered):
    """Applies or refuses what is in its inbox."""

    def __init__(self, fleet, incarnation, version):
        super().__init__(fleet, "server", incarnation)
        self.version, self.checkpoint = version, version
        self.joined, self.inbox, self.held = {}, [], []
        self.alive = True

    def handle(self):
        """One message: (worker, incarnation, joins, step), step None for a join."""
        worker, incarnation, joins, step = self.inbox.pop(0)
        known = self.joined.get(worker)
        if step is None:
            if known is None or known < (incarnation, joins):
                self.joined[worker] = (incarnation, joins)
                self.write(records.Joined(worker=worker, incarnation=incarnation, joins=joins))
                self.fleet.answer(worker, incarnation, joins, "model")
            return
        if known != (incarnation, joins):
            code = "stale-incarnation" if known and known[0] > incarnation else "not-joined"
            self.write(
                records.Refused(
                    peer="x", code=code, reason="", worker=worker, incarnation=incarnation, joins=joins, step=step
                )
            )
            self.fleet.truth[worker, incarnation, step] = code
            self.fleet.answer(worker, incarnation, joins, "refuse")
            return
        self.held.append((worker, incarnation, joins, step))
        if not self.fleet.rounds:
            self.apply()

    def apply(self):
        """All that is held, also of who has left or joined anew since."""
        held, self.held = self.held, []
        for worker, incarnation, joins, step in held:
            self.version += 1
            self.write(update(worker, incarnation, joins, step, self.version))
            self.fleet.truth[worker, incarnation, step] = self.version
            self.fleet.answer(worker, incarnation, joins, "model")

    def finish(self):
        """No more is applied."""
        self.write(records.Finished(version=self.version, reason="time"))
        for worker, incarnation, joins, step in self.held:
            self.write(
                records.Refused(
                    peer="x", code="finished", reason="", worker=worker, incarnation=incarnation, joins=joins, step=step
                )
            )
            self.fleet.truth[worker, incarnation, step] = "finished"

    def leave(self, worker):
        """It takes the worker to have left."""
        if worker in self.joined:
            incarnation, _ = self.joined.pop(worker)
            self.write(records.Left(worker=worker, incarnation=incarnation, reason="silence"))


class Worker(Buffered):
    """Computes, pushes, waits; joins anew when its connection broke or its push was refused."""

    def __init__(self, fleet, name, incarnation):
        super().__init__(fleet, name, incarnation)
        self.begun = self.pushed = self.joins = 0
        self.state, self.joined_server = "waiting", None
        self.frozen = self.broken = False
        self.is_at_another = None
        """Of one that is dead, or frozen: whether the server had answered all that it had pushed."""
        self.is_unheard = False
        """Whether it ended without a controller, while it was not frozen."""
        fleet.ever.append(self)
        self.send(None)

    def send(self, step):
        """On its way to the server."""
        self.joined_server = self.fleet.server if step is None else self.joined_server
        self.is_answered = False
        self.fleet.up.append((self.name, self.incarnation, self.joins, step))

    def push(self):
        """The gradient is there."""
        self.pushed += 1
        self.state = "waiting"
        self.send(self.pushed - 1)

    def answered(self, joins, what):
        """The model came, or a refusal."""
        if self.state != "waiting" or joins != self.joins:
            return
        if what == "model":
            self.begun += 1
            self.state = "computing"
        else:
            self.join()

    def reconnect(self):
        """What was on its way is lost."""
        self.broken = False
        if self.state == "waiting":
            step = self.pushed - 1
            last = step if ("push", self.joins, step) == self.last else -1
            self.write(records.Unanswered(incarnation=self.incarnation, joins=self.joins, step=last, reason="broke"))
            key = self.name, self.incarnation, step
            if last >= 0 and key not in self.fleet.truth:
                self.fleet.truth[key] = "flight" if self.joined_server.alive else "server"
            self.join()

    @property
    def last(self):
        """Whether it waits for the answer to a push, or to a join."""
        return ("push", self.joins, self.pushed - 1) if self.pushes_in_join else ("join", self.joins, -1)

    @property
    def pushes_in_join(self):
        """Whether it has pushed since it joined."""
        return self.pushed > self.pushed_at_join

    pushed_at_join = 0

    def join(self):
        """Anew."""
        self.joins += 1
        self.pushed_at_join = self.pushed
        self.state = "waiting"
        self.send(None)

    def halt(self):
        """It does nothing any more."""
        if self.is_at_another is None:
            self.is_at_another = self.state == "computing" or self.is_answered

    @property
    def is_silent(self):
        """Whether it ended unheard when the server had answered it, and it had not begun what came next."""
        return self.is_unheard and self.state == "waiting" and self.is_at_another

    def tell(self):
        """Its own count."""
        self.write(records.Pushes(incarnation=self.incarnation, begun=self.begun, pushed=self.pushed))


def update(worker, incarnation, joins, step, version):
    """An applied push."""
    return records.Update(
        worker=worker, incarnation=incarnation, joins=joins, step=step, version=version, base=version - 1, staleness=0,
        entries=1, bits=32, bytes=10, loss=1.0,
    )  # fmt: skip


class Fleet:
    """A run of random events.

    `prompt`: nodes report at once, so that nothing told is lost with a crash; who is killed tells how far it has come.
    """

    def __init__(self, draw, steps, *, prompt, server_dies=True, has_cuts=True, is_wrong=True, workers=WORKERS):
        """`is_wrong`: the server takes some to have left who are there, and answers what it holds of them."""
        self.is_wrong = is_wrong
        self.draw, self.prompt, self.server_dies, self.has_cuts = draw, prompt, server_dies, has_cuts
        self.calm, self.rounds = draw.choice([4, 15, 60]), draw.random() < 0.3
        self.runtime = "simulation" if prompt else "process"
        self.t, self.journal = 0.0, []
        self.truth = {}
        """(worker, incarnation, step): its version, or what became of it."""
        self.up, self.down = [], []
        self.incarnations = Counter()
        self.ever = []
        """All lives of workers."""
        self.server, self.workers = None, {}
        self.launch_server(0)
        for name in workers:
            self.launch(name)
        self.say(records.Trial(scenario="s", trial="t", seed=1, runtime=self.runtime, nodes=5, parameters=1))
        for _ in range(steps):
            self.t += 0.01
            self.happen()
            if prompt:
                self.report_all()

    def say(self, record):
        """The controller writes at once."""
        self.journal.append((self.t, "controller", record))

    def node(self, name, state):
        """A node's state."""
        self.say(records.Node(name=name, state=state, incarnation=self.incarnations[name]))

    def launch_server(self, version):
        """From the checkpoint."""
        self.incarnations["server"] += 1
        self.node("server", "joined")
        self.server = Server(self, self.incarnations["server"], version)
        if self.incarnations["server"] > 1:
            self.say(records.Restored(version=version, incarnation=self.incarnations["server"]))
            for key, fate in self.truth.items():
                if isinstance(fate, int) and fate > version:
                    self.truth[key] = "server"

    def launch(self, name):
        """A new life of a worker."""
        self.incarnations[name] += 1
        self.node(name, "joined")
        self.workers[name] = Worker(self, name, self.incarnations[name])

    def answer(self, worker, incarnation, joins, what):
        """On its way to a worker."""
        self.down.append((worker, incarnation, joins, what))
        there = self.workers.get(worker)
        if there and (there.incarnation, there.joins, what) == (incarnation, joins, "model"):
            there.is_answered = True

    def report_all(self):
        """All that is unreported is reported, in any order."""
        nodes = [self.server, *self.workers.values()]
        for worker in self.workers.values():
            worker.tell()
        for node in sorted(nodes, key=lambda _: self.draw.random()):
            node.report()

    def happen(self):
        """Something, mostly that the work goes on."""
        events = [self.compute, self.deliver, self.handle] * self.calm
        events += [self.tell, self.report, self.kill, self.launch_dead, self.freeze, self.thaw, self.leave]
        events += [self.cut] * self.has_cuts + [self.keep] + [self.end_round] * self.calm
        if self.server_dies and self.draw.random() < 0.3:
            events += [self.kill_server, self.resume]
        self.draw.choice(events)()

    def somebody(self):
        """A worker that is not frozen; none where there is none."""
        awake = [worker for worker in self.workers.values() if not worker.frozen]
        return [self.draw.choice(awake)] if awake else []

    def compute(self):
        """A gradient is there, of whoever computes."""
        for worker in self.somebody():
            if worker.state == "computing":
                worker.push()

    def handle(self):
        """The server's next message."""
        if self.server.inbox:
            self.server.handle()

    def end_round(self):
        """Of a synchronous method."""
        self.server.apply()

    def tell(self):
        """A worker's own count."""
        for worker in self.somebody():
            worker.tell()

    def report(self):
        """Somebody's records reach the journal."""
        self.draw.choice([self.server, *self.somebody()]).report()

    def cut(self):
        """A connection breaks, and there is a new one."""
        for worker in self.somebody():
            self.lose(worker.name)
            worker.reconnect()

    def launch_dead(self):
        """All that are dead begin another life."""
        for name in sorted(self.incarnations.keys() - self.workers.keys() - {"server"}):
            self.launch(name)

    def freeze(self):
        """Until the thaw, or to the end."""
        for worker in self.somebody():
            worker.frozen = True
            worker.halt()
            self.say(records.Fault(name="f", action="freeze", target=worker.name, asked_s=self.t))

    def leave(self):
        """The server has not heard of a worker for long."""
        for worker in self.somebody() if self.is_wrong else ():
            self.server.leave(worker.name)
        if not self.is_wrong:
            self.server.leave(self.draw.choice(sorted(self.incarnations.keys() - self.workers.keys())))

    def keep(self):
        """A checkpoint; what was before it has been reported."""
        self.server.report()
        self.server.checkpoint = self.server.version

    def deliver(self):
        """One message arrives; each worker's stay in order."""
        if self.up and self.draw.random() < 0.5:
            self.server.inbox.append(self.up.pop(0))
        elif self.down:
            name, incarnation, joins, what = self.down.pop(0)
            worker = self.workers.get(name)
            if worker is None or worker.incarnation != incarnation:
                return
            if worker.frozen:
                self.down.append((name, incarnation, joins, what))
            else:
                worker.answered(joins, what)

    def lose(self, name):
        """What is on its way to and from a worker, or waits at the server, now and then."""
        self.up = [each for each in self.up if each[0] != name]
        self.down = [each for each in self.down if each[0] != name]

    def kill(self):
        """A worker dies; what it has sent may still arrive."""
        if not self.workers:
            return
        name = self.draw.choice(sorted(self.workers))
        worker = self.workers.pop(name)
        worker.halt()
        if self.draw.random() < 0.5:
            self.lose(name)
        if self.prompt:
            worker.tell()
            worker.report()
        self.node(name, "died")
        worker.unreported = []

    def thaw(self):
        """Everybody; who missed that the server is another hears of it now."""
        for worker in self.workers.values():
            if worker.frozen:
                worker.frozen, worker.is_at_another = False, None
                self.say(records.Fault(name="f", action="thaw", target=worker.name, asked_s=self.t))
                if worker.broken:
                    worker.reconnect()

    def kill_server(self):
        """And launch it again from its checkpoint."""
        old = self.server
        old.alive = False
        self.up, self.down = [], []
        self.node("server", "died")
        self.launch_server(old.checkpoint)
        for worker in self.workers.values():
            if worker.frozen:
                worker.broken = True
            else:
                worker.reconnect()

    def resume(self):
        """The controller is killed, and everybody with it; the run goes on with new lives."""
        self.server.alive = False
        self.up, self.down = [], []
        names = sorted(self.incarnations.keys() - {"server"})
        for worker in self.workers.values():
            worker.is_unheard = not worker.frozen
            worker.halt()
        self.workers = {}
        for name in names:
            self.launch(name)
        self.launch_server(self.server.checkpoint)
        for worker in self.workers.values():
            worker.joined_server = self.server
        self.say(records.Trial(scenario="s", trial="t", seed=1, runtime=self.runtime, nodes=5, parameters=1))

    def end(self):
        """The trial ends; who is frozen does not answer."""
        self.t += 1.0
        self.server.finish()
        for worker in self.workers.values():
            if not worker.frozen:
                worker.tell()
                worker.report()
        self.server.report()
        for name, worker in self.workers.items():
            self.node(name, "died" if worker.frozen else "stopped")
        self.node("server", "stopped")
        self.say(records.Ended(outcome="completed", reason=""))
        return self.journal

    def true_counts(self):
        """What became of all updates that were ever begun; asked after the end."""
        counts = Counter()
        for fate in self.truth.values():
            counts["applied" if isinstance(fate, int) else fate] += 1
        return counts
