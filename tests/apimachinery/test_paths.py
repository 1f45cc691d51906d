"""Field paths are printed, read and followed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.apimachinery import paths

KEYS = st.text(min_size=1, max_size=12) | st.sampled_from(["nvidia.com/gpu", "0", "a~b", "x-y", '"', "\\", "", "a]b"])
PATHS = st.lists(KEYS | st.integers(0, 999), max_size=6).map(tuple)


@pytest.mark.parametrize(
    "path, text",
    [
        pytest.param((), "", id="the root is empty"),
        pytest.param(("spec", "containers", 0, "image"), "spec.containers[0].image", id="words and indices"),
        pytest.param(("limits", "nvidia.com/gpu"), 'limits["nvidia.com/gpu"]', id="other keys are quoted"),
        pytest.param(("a", "0"), 'a["0"]', id="a key of digits is not an index"),
        pytest.param((0, "x"), "[0].x", id="a list at the root"),
    ],
)
def test_a_path_prints_and_reads_back(path, text):
    assert paths.path_as_text(path) == text
    assert paths.parse_path(text) == path


@given(PATHS)
def test_every_printed_path_reads_back(path):
    assert paths.parse_path(paths.path_as_text(path)) == path


@pytest.mark.parametrize(
    "text, path",
    [
        ("limits[nvidia.com/gpu]", ("limits", "nvidia.com/gpu")),
        ("containers[*].image", ("containers", "*", "image")),
        ('a["\\x"]', ("a", "\\x")),
    ],
)
def test_keys_in_the_spelling_of_kubernetes_are_read(text, path):
    assert paths.parse_path(text) == path


@pytest.mark.parametrize("text", [".spec", "spec.", "spec..x", "a b", "a[", "a[]", '["x', "[0]x"])
def test_other_text_is_not_a_path(text):
    with pytest.raises(ValueError, match="is not a field path"):
        paths.parse_path(text)


def test_a_path_has_no_more_steps_than_an_object_has_levels():
    deepest = "a" + ".b" * (paths.MAX_DEPTH - 1)
    assert len(paths.parse_path(deepest)) == paths.MAX_DEPTH
    for text in (f"{deepest}.c", f"{deepest}" * 1000):
        with pytest.raises(ValueError, match="at most 200 steps"):
            paths.parse_path(text)


@all_rows(
    "text, path, rest",
    [
        ("spec.x[0].y: text", ("spec", "x", 0, "y"), ": text"),
        ("spec.x text", ("spec", "x"), " text"),
        ("spec: text", ("spec",), ": text"),
        ("spec.x", ("spec", "x"), ""),
        ('spec.limits["a.b/c"]: bad', ("spec", "limits", "a.b/c"), ": bad"),
        ("rules[0].verbs: bad", ("rules", 0, "verbs"), ": bad"),
        ("spec text", (), "spec text"),
        ("error: text", (), "error: text"),
        ("gpu count", (), "gpu count"),
        ("nvidia.com is not", (), "nvidia.com is not"),
        ("nvidia.com/gpu: bad", (), "nvidia.com/gpu: bad"),
        ("spec.x, text", (), "spec.x, text"),
        ("spec.x:text", (), "spec.x:text"),
        ("[0].x: text", (), "[0].x: text"),
        ("", (), ""),
    ],
)
def test_the_path_at_the_start_of_a_message_is_found(text, path, rest):
    assert paths.split_off_leading_path(text) == (path, rest)


@given(PATHS, st.text(max_size=9))
def test_a_wrapped_message_can_be_joined_again_with_any_prefix(path, text):
    message = f"{paths.path_as_text(('spec', *path))}: {text}"
    assert paths.split_off_leading_path(message) == (("spec", *path), f": {text}")


@pytest.mark.parametrize(
    "path, text",
    [((), ""), (("spec", "containers", 0), "/spec/containers/0"), (("a/b", "c~d", "-"), "/a~1b/c~0d/-"), (("",), "/")],
)
def test_json_pointers(path, text):
    assert paths.json_pointer(path) == text


OBJECT = {"spec": {"containers": [{"name": "a"}], "none": None}}


@pytest.mark.parametrize(
    "path, value",
    [
        ((), OBJECT),
        (("spec", "containers", 0, "name"), "a"),
        (("spec", "containers", 1, "name"), "default"),
        (("spec", "containers", -1), "default"),
        (("spec", "containers", "name"), "default"),
        (("spec", 0), "default"),
        (("spec", "none"), "default"),
        (("spec", "none", "x"), "default"),
        (("absent",), "default"),
    ],
)
def test_a_value_is_found_or_the_default(path, value):
    assert paths.get(OBJECT, path, "default") == value
