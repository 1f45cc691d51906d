"""Shell scripts as commands: words, the constructs around them, and the known variables at each word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.facts.command_lines.shell import ScriptVariables, ShellCall, read_shell_call, split_into_commands


def words(script: str, **known: str) -> list[tuple[str, ...]]:
    variables = ScriptVariables(known)
    return [taken for command in split_into_commands(script) if (taken := variables.assign_and_expand_command(command))]


@all_rows(
    ("script", "expected"),
    [
        ("a b  c", [("a", "b", "c")]),
        ("a\tb\r\nc", [("a", "b"), ("c",)]),
        ("a; b && c || d | e & f |& g", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",), ("g",)]),
        ("a \\\n  b \\\r\n c", [("a", "b", "c")]),
        ("a\\\nb c\\ d \\'", [("ab", "c d", "'")]),
        ("a 'b  \"c' \"d 'e\" f'g'\"h\"i", [("a", 'b  "c', "d 'e", "fghi")]),
        ('a "b\\"c\\$d\\e\\\\"', [("a", 'b"c$d\\e\\')]),
        ('a "" ""b', [("a", "", "b")]),
        ("a # b c\nd#e #", [("a",), ("d#e",)]),
        ("# only a comment", []),
        ("a > out 2>&1 b 2>>err <in &>all c", [("a", "b", "c")]),
        ("a 2 >out 2", [("a", "2", "2")]),
        ("a <<EOF b\nc d\nEOF\ne", [("a", "b"), ("e",)]),
        ("a <<-'EOF'\n\tc\n\tEOF\ne", [("a",), ("e",)]),
        ("a <<X <<Y\n1\nX\n2\nY\nb", [("a",), ("b",)]),
        ("a <<EOF\nnever closed", [("a",)]),
        ("a <<<word b", [("a", "b")]),
        ("a $(b; c 'd)' \"e)\" \\) (f)) g", [("a", "$(b; c 'd)' \"e)\" \\) (f))", "g")]),
        ("a `b c` ${d:-e} ${f} $((1 + 2)) $1 $@ $", [("a", "`b c`", "${d:-e}", "${f}", "$((1 + 2))", "$1", "$@", "$")]),
        ("a $'b' \"$'c'\"", [("a", "b", "$'c'")]),
        ("a <(b c) > >(tee d)", [("a", "<(b c)")]),
        ("a ${b)c}", [("a", "${b)c}")]),
        ("if a; then b; elif c; then d; else e; fi; f", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",)]),
        ("while ! a; do b; done", [("a",), ("b",)]),
        ("for x in 1 2; do a $x; done", [("a", "?")]),
        ("case $x in a|b) c;; *) d;; esac", [("case", "$x", "in", "a"), ("b",), ("c",), ("*",), ("d",)]),
        ("f() { a; }; function g { b; }", [("f",), ("a",), ("b",)]),
        ("(a; b) { c; }", [("a",), ("b",), ("c",)]),
        ("time a; ! b", [("a",), ("b",)]),
        ("X=1 Y=2 a", [("a",)]),
        ("\u00a0a b", [("\u00a0a", "b")]),
        ("'if' a", [("if", "a")]),
    ],
)
def test_scripts_are_read_as_commands(script: str, expected: list) -> None:
    assert words(script) == expected


@all_rows(
    ("script", "expected"),
    [
        ("a $X", "8"),
        ("a ${X}", "8"),
        ('a "$X"', "8"),
        ("a '$X'", "$X"),
        ("a \\$X", "$X"),
        ("a $Y ", "$Y"),
        ("X=2; a $X", "2"),
        ("X=2 && a $X", "2"),
        ("export X=2 Y=3; a $X$Y", "23"),
        ("X=2 a $X", "8"),
        ("Y=$X; a $Y", "8"),
        ("Y='a b'; a \"$Y\"", "a b"),
        ("X=$(nproc); a $X", "?"),
        ("X=${N:-2}; a $X", "?"),
        ("X+=2; a $X", "?"),
        ("X[0]=2; a $X", "?"),
        ("X=(1 2); a $X", "?"),
        ("b && X=2; a $X", "?"),
        ("X=2 | b; a $X", "?"),
        ("X=2 & a $X", "?"),
        ("if b; then X=2; fi; a $X", "?"),
        ("f() { X=2; }; a $X", "?"),
        ("function f { X=2; }; a $X", "?"),
        ("(X=2); a $X", "?"),
        ("read X; a $X", "?"),
        ("while read -r X; do b; done; a $X", "?"),
        ("for X in 1; do b; done; a $X", "?"),
        ("unset X; a $X", "?"),
        ("let X=2; a $X", "?"),
        ("(( X = 2 )); a $X", "?"),
        ("printf -v X 2; a $X", "?"),
        ("source x.sh; a $X", "?"),
        ("source x.sh; X=2; a $X", "2"),
        ("X=$(nproc); X=2; a $X", "2"),
        ("export X; a $X", "8"),
    ],
)
def test_variables_have_the_values_that_a_script_gives_them(script: str, expected: str) -> None:
    (found,) = [taken for taken in words(script, X="8") if taken[0] == "a"]
    assert found == ("a", expected)


def test_an_unquoted_variable_is_several_words() -> None:
    assert words('a $X b$X "$X" $Y', X="1 2", Y="") == [("a", "1", "2", "b1", "2", "1 2")]


def test_only_certain_values_of_script_variables_are_used() -> None:
    variables = ScriptVariables({"A": "1", "B": "2"})
    for command in split_into_commands("B=$(x); C=3"):
        variables.assign_and_expand_command(command)
    assert variables.certain_values() == {"A": "1", "C": "3"}


@pytest.mark.parametrize(
    "script", ["a 'b", 'a "b', "a $(b", "a ${b", "a `b", 'a "$(b', "a <(b", '"$("' * 9, '"$(' * 99, "a $('b"]
)
def test_an_unclosed_script_has_no_commands(script: str) -> None:
    with pytest.raises(ValueError, match=r"not closed|too deep"):
        list(split_into_commands(script))


@given(st.text(alphabet="ab $\"'`\\\n\r\t(){}<>|&;#=?X0é\u00a0", max_size=60))
def test_any_text_is_read_or_refused(script: str) -> None:
    try:
        found = list(split_into_commands(script))
    except ValueError:
        return
    assert all(command.words for command in found)


@pytest.mark.parametrize(
    ("command", "call"),
    [
        (["sh", "-c", "a b"], ShellCall(["sh", "-c"], "a b", False, [])),
        (["/bin/bash", "-lc", "a", "bash", "b"], ShellCall(["/bin/bash", "-lc"], "a", False, ["bash", "b"])),
        (
            ["bash", "-o", "pipefail", "-e", "-c", "a"],
            ShellCall(["bash", "-o", "pipefail", "-e", "-c"], "a", False, []),
        ),
        (["bash", "--rcfile", "r", "/run.sh", "a"], ShellCall(["bash", "--rcfile", "r"], "/run.sh", True, ["a"])),
        (["bash", "--norc", "/run.sh"], ShellCall(["bash", "--norc"], "/run.sh", True, [])),
        (["zsh"], ShellCall(["zsh"], "", True, ())),
        (["fish", "-c", "a"], None),
        ([], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_script_of_a_shell_is_found(command: list[str], call: ShellCall | None) -> None:
    assert read_shell_call(command) == call
