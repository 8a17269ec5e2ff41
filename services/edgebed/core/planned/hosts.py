"""The hosts of a run: machines whose container engines start the nodes, and how these are reached."""

import msgspec

from edgebed.core.bounds import Count, PositiveCount

LOCAL = "local"
CONTEXT = "context:"
FORMS = (LOCAL, "ssh://[user@]host[:port]", "tcp://host:port (with tls: FOLDER)", "unix:///path", f"{CONTEXT}NAME")
"""The ways to name an engine."""
ENGINE_PATTERN = (
    r"local|context:[a-zA-Z0-9][a-zA-Z0-9_.+-]*|unix:///\S+|tcp://[^\s/@:]+:\d+|tcp://\[[0-9a-fA-F:.]+\]:\d+"
    r"|ssh://([^\s/@:-][^\s/@:]*@)?([^\s/@:\[-][^\s/@:]*|\[[0-9a-fA-F:.%\w]+\])(:\d+)?(/\S*)?"
)


class EngineAddress(msgspec.Struct, frozen=True):
    """A host by the name that its user gives it, and the way to its container engine."""

    host: str
    engine: str = LOCAL
    """One of `FORMS`; `local` is the engine that the `docker` command would take."""
    tls: str = ""
    """For tcp:// the folder with ca.pem, cert.pem and key.pem; empty: no TLS."""


class HostPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A host as the plan knows it. None: unknown."""

    name: str
    engine: str = LOCAL
    tls: str = ""
    cores: Count | None = None
    memory_bytes: Count | None = None
    rate_bit_s: PositiveCount | None = None
    """Rate of the network between the hosts, at this one."""

    @property
    def address(self) -> EngineAddress:
        """Return how its engine is reached."""
        return EngineAddress(self.name, self.engine, self.tls)
