"""Field errors print as apimachinery v0.36 prints them."""

import pytest

from webhook.manifests import field_errors as errors

PATH = ("spec", "validations", 0, "reason")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.required_error(PATH), "Required value"),
        (errors.required_error(PATH, "say it"), "Required value: say it"),
        (errors.invalid_error(PATH, 'a"b\n', "bad"), 'Invalid value: "a\\"b\\n": bad'),
        (errors.invalid_error(PATH, ["*", "a"], "bad"), 'Invalid value: ["*","a"]: bad'),
        (errors.unsupported_error(PATH, "X", ("A", "B")), 'Unsupported value: "X": supported values: "A", "B"'),
        (errors.duplicate_error(PATH, "x"), 'Duplicate value: "x"'),
        (errors.forbidden_error(PATH, "no"), "Forbidden: no"),
        (errors.too_many_error(PATH, 65, 64), "Too many: 65: must have at most 64 items"),
    ],
)
def test_the_body_is_that_of_the_api_server(error, text):
    assert error.body == text
    assert str(error) == f"spec.validations[0].reason: {text}"


@pytest.mark.parametrize(
    ("text", "quoted"), [("é", '"é"'), ("\x01", '"\\x01"'), ("\u200b", '"\\u200b"'), ("\U000e0001", '"\\U000e0001"')]
)
def test_text_is_quoted_as_go_does(text, quoted):
    assert errors.quote_as_go(text) == quoted


def test_one_error_is_printed_alone_and_several_in_brackets():
    assert errors.join_errors(["a"]) == "a"
    assert errors.join_errors(["a", "b", "a"]) == "[a, b]"
