"""What is printed cannot act on a terminal, whoever wrote it, and in JSON it stays what it was."""

import io
import json

from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from edgebed.core.console import make_console, put, put_json, put_lines, put_rich, quoted, say

EVIL = "a\x1b[2J\r\x07b\x9b31m\u202ec"
QUOTED = "a\\u001b[2J\\r\\u0007b\\u009b31m\\u202ec"


def test_what_moves_a_cursor_or_turns_writing_is_quoted():
    """Ends of lines, tabs, letters and signs of any writing are not."""
    plain = "Zürich — 9.19 % – ✓ 漢字 🙂\n\tend\u00a0"

    assert quoted(EVIL) == QUOTED
    assert quoted(plain) == plain


@given(st.text())
def test_quoting_leaves_nothing_to_act_on_and_does_it_once(text):
    """Nor does it lose anything where JSON is read again."""
    assert all(each.isprintable() or each.isspace() for each in quoted(text))
    assert not set(quoted(text)) & {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))}
    assert quoted(quoted(text)) == quoted(text)
    assert json.loads(quoted(json.dumps(text, ensure_ascii=False))) == text


def test_every_way_out_quotes(capsys):
    """A line, JSON, lines as they come, and what goes to standard error."""
    put(EVIL)
    put_json({"a": EVIL})
    put_lines([EVIL])
    say(EVIL)
    printed = "".join(capsys.readouterr())

    assert printed.count(QUOTED) == 4
    assert "\x1b" not in printed


def test_lines_as_they_are_go_to_files_alone(capsys, monkeypatch):
    """On a terminal they are quoted like all others."""
    put_lines([EVIL], as_is=True)
    assert EVIL in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    put_lines([EVIL], as_is=True)
    assert capsys.readouterr().out == f"{QUOTED}\n"


def test_a_console_quotes_texts_and_cells_and_keeps_its_own_colours():
    """A table is made of what others wrote, too."""
    console = make_console(io.StringIO(), width=100, terminal=True)
    table = Table(title=f"t\x1b]0;x{EVIL}")
    table.add_column("column\x1b[1A")
    table.add_row(Text(f"cell\x1b[1A {EVIL}"))
    console.print(table)
    console.print(Text("text\x1b[1A", style="red"))
    shown = console.file.getvalue()

    assert "\x1b[1A" not in shown
    assert "\x1b]0" not in shown
    assert "\u202e" not in shown
    assert "text\\u001b[1A" in shown


def test_colours_for_a_terminal_reach_it(capsys, monkeypatch):
    """Quoting concerns what is shown, not how it is shown."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    put_rich(lambda console: console.print(Text("met\x1b[1A", style="red")))

    assert capsys.readouterr().out == "\x1b[31mmet\\u001b[1A\x1b[0m\n"
