"""Wire errors say whose fault it is."""


class WireError(ValueError):
    """A message that cannot travel; never raised itself."""


class LocalWireError(WireError):
    """This node tried to send something that does not fit the protocol: a bug here."""


class RemoteWireError(WireError):
    """The peer sent something that does not fit the protocol: count it, report it, drop it."""
