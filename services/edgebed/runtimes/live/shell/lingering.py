"""The end of a node that has trained: it stays until Prometheus has read its last values."""

import math

import zmq

from edgebed.metrics.discovery import Visits
from edgebed.runtimes.live.endpoint import DealerEndpoint
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.traffic import OBSERVE_S
from edgebed.wire.messages import Stop


def linger(life: Lifetime, visits: Visits, management: DealerEndpoint) -> None:
    """Wait until Prometheus has come, the controller says stop once more, or it is gone; as long as was allowed.

    A node that has not trained has no such values, and may have heard of the end too late to be waited for.
    """
    if life.began_s is None or not life.stop or not life.stop.linger_s:
        return
    visits.expect_scrape()
    poller = zmq.Poller()
    poller.register(visits, zmq.POLLIN)
    poller.register(management.socket, zmq.POLLIN)
    until_s = life.now() + life.stop.linger_s
    while (now := life.now()) < until_s and not management.lost_for_s(now):
        management.flush()
        ready = dict(poller.poll(math.ceil(1000 * min(OBSERVE_S, until_s - now))))
        told = [event.message for event in management.receive()]
        if visits.fileno() in ready or any(isinstance(message, Stop) for message in told):
            return
