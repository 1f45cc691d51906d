"""Lines of files in reports: the place is marked, long lines are cut, and no secret is shown."""

import json

import pytest

from webhook.yamltext import yamlfile
from webhook.yamltext.source_line import SourceLine, source_line

POD = """apiVersion: v1
kind: Pod
spec:
  containers:
  - name: a
    env: [{name: X, value: hunter2}, {name: Y, valueFrom: {secretKeyRef: {name: shown}}}]
    image: x
  - {name: b, env: [{name: T, value: "hunter2"}], image: 3}
  - name: c
    env:
    - name: K
      value: |
        hunter2

        hunter2
    - &twice {name: L, value: hunter2, value: hunter2}
    - *twice
---
kind: Secret
metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":"hunter2"}'}}
data: {first: hunter2, second: hunter2}
stringData:
  third: hunter2
---
kind: List
items:
- kind: Secret
  data: hunter2
- spec: {envVars: {A: hunter2}, runtimeEnvYAML: "env_vars: {A: hunter2}"}
- base: &base {kind: Secret}
  <<: *base
  data: {a: hunter2}
"""
CONTAINERS = ("spec", "containers")


@pytest.mark.parametrize(
    ("index", "path", "text", "marked"),
    [
        pytest.param(0, (*CONTAINERS, 0, "image"), "image: x", "image", id="a key"),
        pytest.param(0, (*CONTAINERS, 0), "- name: a", "name", id="an item"),
        pytest.param(0, (*CONTAINERS, 1, "image"), "- {name: b, env: [{name: T, value: ***}], image: 3}", "image", id="a key after a hidden value"),
        pytest.param(0, (*CONTAINERS, 2, "env", 0, "value"), "value: ***", "value", id="a value in block style"),
        pytest.param(0, (*CONTAINERS, 2, "env", 1), "- &twice {name: L, value: ***, value: ***}", "&twice", id="a repeated key"),
        pytest.param(1, ("data", "second"), "data: {first: ***, second: ***}", "second", id="data of a Secret"),
        pytest.param(1, ("stringData", "third"), "third: ***", "third", id="texts of a Secret"),
        pytest.param(1, ("metadata", "annotations"), "metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: ***}}", "annotations", id="an applied Secret"),
        pytest.param(2, ("items", 0, "data"), "data: ***", "data", id="a Secret in a list"),
        pytest.param(2, ("items", 1, "spec", "envVars"), "- spec: {envVars: {A: ***}, runtimeEnvYAML: ***}", "envVars", id="environments of custom kinds"),
        pytest.param(2, ("items", 2, "data"), "data: {a: ***}", "data", id="a merged Secret"),
    ],
)  # fmt: skip
def test_lines_of_yaml(index, path, text, marked):
    line = yamlfile.read_parts_of_text(POD, "a.yaml").documents[index].source_line(path)
    assert line.text == text
    assert text[line.column - 1 :][: line.length] == marked


def every_path(value, path=()):
    yield path
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from every_path(inner, (*path, step))


def test_no_line_of_the_file_shows_a_secret():
    shown = [
        each.source_line(path)
        for each in yamlfile.read_parts_of_text(POD, "a.yaml").documents
        for path in every_path(each.value)
    ]
    assert len(shown) > 50
    assert not [line for line in shown if "hunter2" in line.text]


@pytest.mark.parametrize("indent", [None, 1])
def test_lines_of_json(indent, tmp_path):
    """A file has several values, each on one line or on several lines."""
    import json

    values = [each.value for each in yamlfile.load(POD.replace(", value: hunter2, value: hunter2", ", value: hunter2"))]
    text = "\n".join(json.dumps(value, indent=indent) for value in values)
    shown = [each.source_line(path) for each in yamlfile.load(text, "a.json") for path in every_path(each.value)]
    assert len(shown) > 50
    assert not [line for line in shown if "hunter2" in line.text]
    assert any(line.text[line.column - 1 :].startswith('"image"') for line in shown)


def test_a_document_that_is_too_long_shows_nothing():
    text = f"kind: ConfigMap\ndata: {{a: {'x' * (1 << 20)}}}\n"
    assert yamlfile.load(text)[0].source_line(("data",)) is None
    assert yamlfile.load(f'{{"data": "{"x" * (1 << 20)}"}}', "a.json")[0].source_line(("data",)) is None


def test_a_piece_of_a_broken_file_has_its_lines():
    [read] = yamlfile.read_parts_of_text("kind: [\n---\nkind: Pod\n", "a.yaml").documents
    assert read.source_line(("kind",)) == SourceLine("kind: Pod", 1, 4)


def test_long_lines_are_cut_around_the_place():
    line = source_line(f"{'a' * 500} key: {'b' * 500}", 502, ())
    assert (len(line.text), line.text[line.column - 1 :][:3]) == (240, "key")
    assert line.text[0] == line.text[-1] == "…"
    narrow = line.within(20)
    assert (len(narrow.text), narrow.text[narrow.column - 1 :][:3]) == (20, "key")
    assert line.within(3).length == 1


def test_a_place_in_a_hidden_value_is_the_start_of_the_value():
    assert source_line("a: secret", 6, [(3, 9)]) == SourceLine("a: ***", 4, 3)


COMMANDS = """\
spec:
  containers:
  - name: torchrun
    image: torchrun:1
    env:
    - {name: NCCL_DEBUG, value: --nproc_per_node}
    command: [sh, -c]
    args:
    - |
      set -e
      torchrun --nproc_per_node=8 --nproc t.py
  - {name: b, command: ["vllm", "--tp", "4"]}
"""


@pytest.mark.parametrize(
    ("path", "words", "place"),
    [
        pytest.param(("spec", "containers", 0), ("--nproc-per-node",), (11, 16), id="in a script, `_` as `-`"),
        pytest.param(
            ("spec", "containers", 0), ("--other", "torchrun"), (11, 7), id="the first of several words that occurs"
        ),
        pytest.param(("spec", "containers", 0), ("--nproc_per",), (3, 5), id="a part of a word is not found"),
        pytest.param(("spec", "containers", 1), ("-tp", "--tp"), (12, 34), id="inside quotes"),
        pytest.param(("spec", "containers", 0, "env"), ("NCCL_DEBUG",), (6, 14), id="a variable"),
        pytest.param(
            ("spec", "containers", 1, "args"), ("vllm",), (12, 26), id="a word of a field that the file does not have"
        ),
        pytest.param((), ("vllm",), (1, 1), id="the object as a whole"),
    ],
)
def test_the_place_of_a_word_in_a_field_is_found(path, words, place):
    (document,) = yamlfile.load(COMMANDS)
    assert document.position(path, words) == place
    as_json = json.dumps(document.value)
    (document,) = yamlfile.load(as_json, "a.json")
    _, column = document.position(path, words)
    found = next((word for word in words if as_json[column - 1 :].startswith(word.replace("-per-", "_per_"))), "")
    assert bool(found) == (place not in ((1, 1), (3, 5)))


def test_the_marked_word_is_whole():
    (document,) = yamlfile.load(COMMANDS)
    line = document.source_line(("spec", "containers", 0), ("--nproc_per_node",))
    assert line == SourceLine("torchrun --nproc_per_node=8 --nproc t.py", 10, 18)
