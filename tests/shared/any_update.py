"""A compression that says nothing of what it sends, for servers that are given updates of any form."""

from edgebed.algorithms.compressor import Compressor
from edgebed.core.plan import Part


class AnyUpdate(Compressor):
    """Restores what it is sent, dense or sparse."""


ANY_UPDATE = Part(name=f"{__name__}:AnyUpdate")
