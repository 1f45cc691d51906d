"""Which texts are still to be filled in."""

from __future__ import annotations

import pytest

from webhook.placeholders import is_placeholder, names_variable, stands_for_another_type


@pytest.mark.parametrize(
    "text",
    [
        *("$N", "${N}", "gpu-$(N)", "{{ .Values.n }}", "a{{n}}b"),
        *("__NUM_NODES__", "PLACEHOLDER_NUM_GPU", "<queue>", "<ADD LUN ID Here>", "gs://<bucket>/a", "...", "…"),
    ],
)
def test_a_text_that_something_fills_in(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "gpu-1", "nvidia.com/gpu", "{n}", "500m"),
        *("a__b", "__init__", "a < b", "<", "->", "a...b", "v1.2", "placeholder"),
    ],
)
def test_a_finished_text(text: str) -> None:
    assert not is_placeholder(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("g-$N", True), ("${N}", True), ("$(N)", True), ("{{ .n }}", True), ("*$@", False), ("a$", False)],
)
def test_a_sign_alone_names_no_variable(text: str, expected: bool) -> None:
    assert names_variable(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("NUM_NODES", True), ("GPU_2_COUNT", True), ("${N}", True), ("ONE", False), ("Num_Nodes", False), ("_", False)],
)
def test_a_constant_in_the_place_of_a_number_is_filled_in_by_somebody(text: str, expected: bool) -> None:
    assert stands_for_another_type(text) is expected
