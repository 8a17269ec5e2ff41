"""What the tests of all runtimes share: processes are forked from one that has torch loaded."""

from warm_command import warm_fork_servers  # noqa: F401 # a fixture
