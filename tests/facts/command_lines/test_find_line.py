"""The end of a here-document is found where `str.find` finds it, after any text."""

from hypothesis import given
from hypothesis import strategies as st

from webhook.facts.command_lines.shell import _find_newline_and_sign

TEXTS = st.text("EO\nx", max_size=80).map(lambda text: "\n" + text * 3)


@given(TEXTS, st.sampled_from(["\n", "\nE", "\nEO", "\nEOE", "\n\nE"]), st.integers(0, 40))
def test_a_line_search_finds_the_same_line_as_find(text, sign, start):
    assert _find_newline_and_sign(text, sign, start) == text.find(sign, start)
