"""docs/own-program.md works: its program runs under its conditions, and meets what is expected of it."""

import pytest
from documented_commands import PROGRAMS, follow

from edgebed.emulation import means

LIMIT_S = 200.0


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_commands_of_the_page_run_a_program_under_conditions() -> None:
    """Checked, and run to its end while a link is cut."""
    if reason := means.why_no_namespaces():
        pytest.skip(f"no namespaces: {reason}; run the tests as root")
    said = follow(PROGRAMS, LIMIT_S)

    assert "exit_code 0, expected == 0" in said
    assert "final_step 100, expected == 100" in said
    assert "home-1: cut" in said
