"""As text, any content is one line, with fields that a program can separate."""

import io
import json

import pytest

from webhook.logs.structured import Log, log_line_as_text

HEAD = {"time": "T", "level": "info", "message": "review"}


def line(**fields):
    return log_line_as_text({**HEAD, **fields})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("team-a", "team-a"),
        (True, "true"),
        (3.25, "3.25"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ("true", "true"),
        (["p", "q"], '["p", "q"]'),
        ("two\nlines", r'"two\nlines"'),
        ("\x1b[31mred", r'"\u001b[31mred"'),
        ("\u202egnirts", r'"\u202egnirts"'),
        ("über", "über"),
        ('say "no"', r'"say \"no\""'),
    ],
)
def test_a_value_is_a_word_or_json(value, expected):
    assert line(x=value) == f"T info    review x={expected}"


def test_a_message_cannot_begin_a_line_of_its_own():
    assert log_line_as_text({**HEAD, "message": "a\n::error::b"}) == r"T info    a\n::error::b"


def test_a_log_in_format_text_writes_plain_lines():
    stream = io.StringIO()
    log = Log(stream=stream, clock=lambda: 1.5, format="text")
    log.warning("reloaded", what="policies", reason=None, names=["a b"])
    assert stream.getvalue() == '1970-01-01T00:00:01.500Z warning reloaded what=policies names=["a b"]\n'


def test_json_in_a_text_log_can_be_parsed():
    shown = line(x={"a": [1, None]}).partition("x=")[2]
    assert json.loads(shown) == {"a": [1, None]}
