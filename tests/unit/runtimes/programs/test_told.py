"""What a program is told of its place among all nodes."""

from edgebed.core.planned.command import Member
from edgebed.runtimes.programs.told import environment, hosts

MEMBERS = (Member("hub-0", "hub", 0, "10.0.0.1"), Member("home-0", "home", 0, "10.0.0.2"))


def test_a_node_is_told_who_it_is_and_where_the_others_are():
    """Rank 0 is the master."""
    assert environment(1, MEMBERS, seed=7, incarnation=2, interface="data") == {
        "EDGEBED_NODE": "home-0",
        "EDGEBED_CLASS": "home",
        "EDGEBED_INDEX": "0",
        "EDGEBED_RANK": "1",
        "EDGEBED_WORLD_SIZE": "2",
        "EDGEBED_INCARNATION": "2",
        "EDGEBED_SEED": "7",
        "EDGEBED_NODES": "hub-0=10.0.0.1,home-0=10.0.0.2",
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "29500",
        "GLOO_SOCKET_IFNAME": "data",
        "TP_SOCKET_IFNAME": "data",
        "NCCL_SOCKET_IFNAME": "data",
    }


def test_all_nodes_are_known_by_name():
    """Beside the loopback."""
    assert hosts(MEMBERS) == "127.0.0.1\tlocalhost\n10.0.0.1\thub-0\n10.0.0.2\thome-0\n"
