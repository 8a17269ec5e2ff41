"""What the restart of a node takes in virtual time."""

from edgebed.scenario.section import DurationFromZero, Section


class RestartTime(Section):
    """Virtual time that the restart of a node takes: until its end is noticed, and from its launch until it is ready.

    In the simulation only. It is beside the delay that is asked for, and the same on every device, since nodes start
    without a CPU cap. `edgebed calibrate` measures it.
    """

    server: DurationFromZero = 0.0
    """The server's restart, which loads no torch."""
    others: DurationFromZero = 0.0
    """The restart of a worker or any other node."""
