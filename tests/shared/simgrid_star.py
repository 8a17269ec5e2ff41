"""A star in SimGrid (Debian's python3-simgrid): JSON in, when each message is over out. Run by its own interpreter.

Fluid max-min sharing alone: no latency, no factors for protocols, no acknowledgements.
"""

import json
import sys

from simgrid import Actor, Engine, LinkInRoute, Mailbox, NetZone, this_actor

SETTINGS = ("network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "network/loopback-lat:0")


def main() -> None:
    """Read the star, simulate it, write the ends."""
    given = json.load(sys.stdin)
    engine = Engine(["star", *(f"--cfg={setting}" for setting in SETTINGS), "--log=root.thres:error"])
    zone = NetZone.create_full_zone("all")
    links = [
        [zone.create_link(f"{way}-{k}", bit_s / 8) for way, bit_s in zip(("up", "down"), rates, strict=True)]
        for k, rates in enumerate([given["server"], *given["workers"]])
    ]
    hosts = [zone.create_host(f"host-{k}", 1e9) for k in range(len(links))]
    for k in range(1, len(hosts)):
        zone.add_route(hosts[k].netpoint, hosts[0].netpoint, None, None, _crossed(links[k][0], links[0][1]), False)
        zone.add_route(hosts[0].netpoint, hosts[k].netpoint, None, None, _crossed(links[0][0], links[k][1]), False)
    zone.seal()
    ends = [0.0] * len(given["said"])
    ways: dict = {}
    for number, (worker, is_up, at_s, size) in enumerate(given["said"]):
        ways.setdefault((worker, is_up), []).append((number, at_s, size))
    for (worker, is_up), messages in ways.items():
        one, other = (hosts[worker + 1], hosts[0]) if is_up else (hosts[0], hosts[worker + 1])
        Actor.create(f"send-{worker}-{is_up}", one, _send, messages)
        Actor.create(f"receive-{worker}-{is_up}", other, _receive, messages, ends)
    engine.run()
    json.dump(ends, sys.stdout)


def _crossed(*links):
    return [LinkInRoute(link) for link in links]


def _send(messages) -> None:
    for number, at_s, size in messages:
        if at_s > Engine.clock:
            this_actor.sleep_until(at_s)
        Mailbox.by_name(str(number)).put(number, size)


def _receive(messages, ends) -> None:
    for number, _, _ in messages:
        Mailbox.by_name(str(number)).get()
        ends[number] = Engine.clock


if __name__ == "__main__":
    main()
