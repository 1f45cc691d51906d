"""Commands for a terminal or a CI system are printed as visible text. JSON stays exact."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.text.terminal import escape_json_text, lines, message_lines, one_line
from webhook.yamltext import yamlfile

SHOWN = {
    "plain text stays": ('a `b` \\x "c" é 漢字 😀', 'a `b` \\x "c" é 漢字 😀'),
    "blanks of other scripts stay": ("a\u3000b\xa0c", "a\u3000b\xa0c"),
    "an escape sequence": ("\x1b[2Jx", r"\x1b[2Jx"),
    "a title": ("\x1b]0;x\x07", r"\x1b]0;x\x07"),
    "C1 controls": ("\x9b2J\x85", r"\x9b2J\x85"),
    "delete and null": ("\x7f\0", r"\x7f\x00"),
    "line breaks": ("a\nb\rc\td", r"a\nb\rc\td"),
    "line and paragraph separators": ("\u2028\u2029", r"\u2028\u2029"),
    "bidirectional controls": ("\u202e\u2066\u200f\u061c", r"\u202e\u2066\u200f\u061c"),
    "invisible characters": ("\u200b\ufeff\u2060", r"\u200b\ufeff\u2060"),
    "tags beyond 16 bits": ("\U000e0041", r"\U000e0041"),
    "lone surrogates": ("\ud800", r"\ud800"),
    "a command of GitHub": ("::error file=a::b", r"\x3a:error file=a::b"),
    "a command after blanks": (" \xa0::error::b", " \xa0\\x3a:error::b"),
    "an older command": ("x ##[error]b", r"x \x23#[error]b"),
    "a command of Azure Pipelines": ("##vso[task.x]", r"\x23#vso[task.x]"),
    "a command of TeamCity": ("##teamcity[x]", r"\x23#teamcity[x]"),
    "a heading and a scope": ("## a::b", "## a::b"),
}


@all_rows(("text", "shown"), SHOWN.values(), ids=SHOWN.keys())
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert one_line(text) == shown
    assert lines([text, "b"]) == f"{shown}\nb\n"


@given(st.text(st.characters(codec=None)))
def test_every_text_is_one_line_of_visible_characters(text: str) -> None:
    shown = one_line(text)
    assert all(unicodedata.category(character)[0] != "C" for character in shown)
    assert len(shown.splitlines()) <= 1
    assert not shown.lstrip().startswith("::")
    assert one_line(shown) == shown


@given(st.text(st.characters(codec=None)) | st.sampled_from(["##[error]", "a\x7f", "##vso[x]"]))
def test_json_is_exact(text: str) -> None:
    for indent in (None, 2):
        shown = escape_json_text(json.dumps({"a": text}, ensure_ascii=False, indent=indent))
        assert json.loads(shown) == {"a": text}
        assert all(one_line(line) == line for line in shown.split("\n"))


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff")))
def test_yaml_is_exact(text: str) -> None:
    shown = yamlfile.dump({"a": text, "b": "é"})
    assert yamlfile.load(shown)[0].value == {"a": text, "b": "é"}
    assert all(unicodedata.category(character)[0] != "C" for character in shown if character != "\n")


def test_only_an_excerpt_of_source_stays_below_its_message() -> None:
    text = "ERROR: <input>:1:1: no\n | a\n | ^\n::error::x"
    assert message_lines(text) == ["ERROR: <input>:1:1: no", " | a", " | ^\\n::error::x"]
