"""A node's command: words as in a shell, placeholders that are filled afterwards, and mistakes that are named."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.planned.command import Member, filled, placeholders, words

MEMBERS = (
    Member("hub-0", "hub", 0, "10.0.0.1"),
    Member("home-0", "home", 0, "10.0.0.2"),
    Member("home-1", "home", 1, "10.0.0.3"),
)
OF_HOME_1 = placeholders(2, MEMBERS)


def arguments(run, values):
    """The words that are run."""
    return tuple(filled(word, values) for word in words(run))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("python train.py --peers {addresses}", ("python", "train.py", "--peers", "10.0.0.1,10.0.0.2,10.0.0.3")),
        ("{node} {index} {rank}/{world_size}", ("home-1", "1", "2/3")),
        ("serve --at={address}:80 --hub '{address.hub-0}'", ("serve", "--at=10.0.0.3:80", "--hub", "10.0.0.1")),
        ("echo '{{\"a\": {rank}}}' {{rank}}", ("echo", '{"a": 2}', "{rank}")),
        ("sh -c 'a | b > $c'", ("sh", "-c", "a | b > $c")),
    ],
)
def test_a_command_is_divided_and_then_filled(run, expected):
    """Braces are written twice where they are meant; nothing else has a meaning."""
    assert arguments(run, OF_HOME_1) == expected


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1), st.text())
def test_what_is_quoted_comes_through_and_no_value_is_divided(quoted, value):
    """Whatever words and values are."""
    run = shlex.join([*(word.replace("{", "{{").replace("}", "}}") for word in quoted), "{node}"])

    assert arguments(run, {"node": value}) == (*quoted, value)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("", "no command; write what is to be run"),
        ("a 'b", '"a \'b" is not to be divided into words: No closing quotation'),
        ("a {adress}", "no placeholder {adress}: did you mean '{address}'? allowed: {rank}, {world_size}, {index}"),
        ("a {size}", "{addresses}, {address.NODE}; a brace that is meant is written twice"),
        ("a {address.home-7}", "no placeholder {address.home-7}: did you mean '{address.home-"),
        ("a {address.x}", "allowed: {address.h"),
        ("a {}", "no placeholder {}: allowed: {rank}"),
        ("a {b", "a lone { in a command; one that is meant is written {{"),
        ("a }", "a lone } in a command; one that is meant is written }}"),
    ],
)
def test_a_mistake_in_a_command_says_what_is_allowed(run, why):
    """Of placeholders that there are not, with the one that was probably meant."""
    with pytest.raises(ValueError) as caught:
        arguments(run, OF_HOME_1)

    assert why in str(caught.value)
