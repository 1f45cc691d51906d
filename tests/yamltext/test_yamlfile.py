"""Files become objects as kubectl reads them, and every path of an object has its line."""

import io
import json
import math
import os
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook import yamltext
from webhook.apimachinery import paths
from webhook.errors import InputError
from webhook.yamltext import scalars, yamlfile
from webhook.yamltext.yamlfile import Document, discover, dump, listing, load, read

JSONS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["yes", "y", "1e3", "0o7", "1_0", "12:30", "2020-01-01", "null", "~", ".inf", "<<", "=", "a\nb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=9,
)


@all_rows(
    "text, value",
    [
        ("yes", True),
        ("y", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("017", 15),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0b101", -5),
        ("08", 8),
        ("1_000", 1000),
        ("+3", 3),
        ("1.0", 1),
        ("1e3", 1000),
        (".5", 0.5),
        ("-1.5", -1.5),
        ("9223372036854775808", 9223372036854775808.0),
        ("1e30", 1e30),
        ("0xFFFFFFFFFFFFFFFF", 18446744073709551615.0),
        ("+0xFFFFFFFFFFFFFFFF", "+0xFFFFFFFFFFFFFFFF"),
        ("0xa906863d7ad7d14721e8", "0xa906863d7ad7d14721e8"),
        ("-0xa906863d7ad7d14721e8", "-0xa906863d7ad7d14721e8"),
        ("0o7777777777777777777777777", "0o7777777777777777777777777"),
        ("0777777777777777777777777777", 7.777777777777778e26),
        ("1_000_000_000_000_000_000_000", 1e21),
        ("9" * 500, "9" * 500),
        ("1e999", "1e999"),
        ("12:30:45", "12:30:45"),
        ("2020-01-01", "2020-01-01"),
        ("1.2.3", "1.2.3"),
        ("+", "+"),
        (".", "."),
        ("._5", "._5"),
        ("nvidia", "nvidia"),
    ],
)
def test_plain_scalars_have_the_values_that_kubectl_reads(text, value):
    result = scalars.resolve(text)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan"])
def test_numbers_json_cannot_hold_are_refused(text):
    with pytest.raises(ValueError, match="JSON has no number"):
        scalars.resolve(text)


@all_rows(
    "text, values",
    [
        ("a: 1\n---\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("# nothing\n", []),
        ("\ufeffa: 1", [{"a": 1}]),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ("{a: 1}", [{"a": 1}]),
        ('{"a": 1}\n---\nb: 2', [{"a": 1}, {"b": 2}]),
        ("- 1\n- 'yes'\n- !!str 1\n- !!float 1\n- !!int '2'\n- !custom x", [[1, "yes", "1", 1.0, 2, "x"]]),
        ("a: !!binary aGk=", [{"a": "hi"}]),
        ("a: !!binary |\n  aG\n  k=\n", [{"a": "hi"}]),
        ("1: a\ntrue: b\n1.5: c", [{"1": "a", "true": "b", "1.5": "c"}]),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  d: 2", [{"a": {"b": 1}, "c": {"b": 1, "d": 2}}]),
        ("a: &x {b: 1}\nc:\n  <<: [*x, {e: 3}]\n  b: 2", [{"a": {"b": 1}, "c": {"b": 2, "e": 3}}]),
        ("'<<': 1", [{"<<": 1}]),
        ("a: &x 1\nb: *x", [{"a": 1, "b": 1}]),
        ('{"a": "\\ud83d\\ude00 \\ud83d", "b": ["\\u0041"], "c": 1.0}', [{"a": "😀 \ufffd", "b": ["A"], "c": 1.0}]),
        ('{"a": 9223372036854775808}', [{"a": 9223372036854775808.0}]),
    ],
)
def test_yaml_texts_become_objects(text, values):
    documents = load(text, "f")
    assert [document.value for document in documents] == values
    assert [document.index for document in documents] == list(range(len(values)))


@all_rows(
    "text, message",
    [
        (
            "a: 1\na: 2",
            "f:2:1: key `a` appears twice in one mapping, and kubectl uses the last value; expected it once",
        ),
        ("a: {b: [1, {c: 1, c: 2}]}", "f:1:19: a.b[1]: key `c` appears twice"),
        ('{"a":1,\n "b":{"a":1, "a":2}}', "f:2:14: key `a` appears twice in one object"),
        ('{"a": NaN}', "f:1:1: JSON has no number `NaN`"),
        ('{"a": 1}\n{"a": }', "f:2:7: not JSON: expecting value"),
        ("a: *x", "f:1:4: a: unknown alias `*x`; expected an anchor `&x` before it"),
        ("a: &x [*x]", "f:1:8: a[0]: alias `*x` contains itself"),
        ("? [a]\n: b", "f:1:3: a mapping or list cannot be a key"),
        ("null: 1", "f:1:1: null cannot be a key"),
        ("<<: 1", "`<<` needs a mapping or a list of mappings"),
        ("a: .inf", "f:1:4: a: JSON has no number `.inf`"),
        ("a: !!int x", "f:1:4: a: `x` is not what its tag `!!int` says"),
        ("a: !!binary x", "f:1:4: a: the value is not base64, which its tag `!!binary` requires"),
        ("a: !!binary |\n  # build first", "f:1:4: a: the value is not base64"),
        ("a: [1", "f:2:1: not YAML: did not find expected ',' or ']'"),
        ("a: b: c", "f:1:5: not YAML: mapping values are not allowed in this context"),
        ("a: 1\nb: \x01", "f:2: not YAML: it has a character that YAML does not allow"),
        ("- " * 201, "f:1:401: nested more than 200 levels deep"),
        ("[" * 50_000, "f:1:201: nested more than 200 levels deep"),
    ],
)
def test_unreadable_text_is_reported_with_its_place(text, message):
    with pytest.raises(InputError) as raised:
        load(text, "f")
    assert message in str(raised.value)


@all_rows(
    "text, value, line, told",
    [
        ("a: 1\nb: {c: 1}\na: {d: 2}", {"a": {"d": 2}, "b": {"c": 1}}, 3, ["f:3:1: key `a` appears twice"]),
        ("b:\n- a: 1\n  a: 2\n  a: {d: 3}", {"b": [{"a": {"d": 3}}]}, 4, ["f:4:3: b[0]: key `a` appears 3 times"]),
        ("a: {d: 1}\nb: 2\na: {d: 1}", {"a": {"d": 1}, "b": 2}, 3, []),
        ("a: {d: 1}\na: {d: 1}\na: {d: 2}", {"a": {"d": 2}}, 3, ["f:3:1: key `a` appears 3 times in one mapping"]),
        ("a: {d: 1}\na: {d: true}", {"a": {"d": True}}, 2, ["f:2:1: key `a` appears twice"]),
        ('{"a": {"d": 1},\n "b": 1, "b": 1}', {"a": {"d": 1}, "b": 1}, 1, []),
        ("a:\na: {d: 1}", {"a": {"d": 1}}, 2, []),
        ("a: {e: [1, {f: }]}\na: {d: 1, e: [1, {f: 2}, 3]}", {"a": {"d": 1, "e": [1, {"f": 2}, 3]}}, 2, []),
        ("a: {e: [1, 2]}\na: {d: 1, e: [1]}", {"a": {"d": 1, "e": [1]}}, 2, ["f:2:1: key `a` appears twice"]),
        ("a: {d: 1, e: 2}\na: {d: 1}", {"a": {"d": 1}}, 2, ["f:2:1: key `a` appears twice"]),
        ("a: {d: 1}\na:", {"a": None}, 2, ["f:2:1: key `a` appears twice"]),
        ("a: {d: 1, description: x}\na: {d: 1, description: z}", {"a": {"d": 1, "description": "z"}}, 2, []),
        ('{"a": {"d": null},\n "a": {\n"d": 2}}', {"a": {"d": 2}}, 3, []),
        ('{"a": {"d": 1},\n "a": {\n"d": 2}}', {"a": {"d": 2}}, 3, ["f:2:2: key `a` appears twice in one object"]),
        ("x: [\n---\na: {d: 1}\na: {d: 2}", {"a": {"d": 2}}, 4, ["f:4:1: key `a` appears twice"]),
        ("a: {d: 1}\n<<: {a: {d: 2}}", {"a": {"d": 2}}, 2, ["f:2:1: key `a` comes before a `<<` that also sets it"]),
        ("<<: {a: {d: 1}}\n<<: {a: {d: 2}}", {"a": {"d": 2}}, 2, ["f:2:1: key `a` comes before a `<<`"]),
        ("<<: [{a: {d: 1}}, {a: {d: 2}}]", {"a": {"d": 1}}, 1, []),
        ("<<: {a: {d: 1}}\na: {d: 2}", {"a": {"d": 2}}, 2, []),
        ("a: {d: 1}\n<<: {a: {d: 1}}", {"a": {"d": 1}}, 2, []),
    ],
)
def test_the_last_value_of_a_repeated_key_counts_and_is_reported(text, value, line, told):
    read = yamlfile.read_parts_of_text(text, "f")
    assert [document.value for document in read.documents] == [value]
    found = "b[0].a.d" if "b" in value and text.startswith("b") else "a.d"
    assert read.documents[0].position(paths.parse_path(found))[0] == line
    assert len(read.repeated) == len(told)
    assert all(str(each).startswith(said) for each, said in zip(read.repeated, told, strict=True))


@all_rows("text", ["a: 1\nb:\n  c: 1\n  c: 1", "a: [\n---\nb:\n  c: 1\n  c: 1", "# on\nb:\n  c:\n  c: 1"])
def test_kustomize_refuses_a_resource_with_a_key_twice(text):
    """kubectl v1.36 kustomize (api v0.20) also refuses equal values. It merges a patch with such a key."""
    read = yamlfile.read_parts_of_text(text, "f", by_kustomize=True, refuses_repeats=True)
    (note,) = read.repeated
    assert note.message == "key `c` appears twice in one mapping, and kustomize refuses the file; expected it once"
    assert (note.line, note.path) == (text.count("\n") + 1, "b")
    assert yamlfile.read_parts_of_text(text, "f", by_kustomize=True).repeated == ()


@all_rows(
    "text, told",
    [
        ("metadata:\n  annotations: {a: b}\n  annotations: {c: d}", ()),
        ("items:\n- metadata:\n    annotations: {a: b}\n    annotations: {c: d}", ()),
        ("metadata:\n  annotations:\n    a: b\n    a: b", ()),
        (
            "metadata:\n  annotations:\n    a: b\n    a: c",
            ("key `a` appears twice in one mapping, and kustomize uses",),
        ),
        (
            "metadata:\n  labels: {a: b}\n  labels: {c: d}",
            ("key `labels` appears twice in one mapping, and kustomize ref",),
        ),
        (
            "spec: {metadata: {annotations: {}, annotations: {}}}",
            ("key `annotations` appears twice in one mapping, and k",),
        ),
    ],
)
def test_kustomize_joins_the_annotations_of_an_object(text, told):
    """kubectl v1.32 kustomize and kustomize v5.5 were run for each row."""
    read = yamlfile.read_parts_of_text(text, "f", by_kustomize=True, refuses_repeats=True)
    assert len(read.repeated) == len(told)
    assert all(each.message.startswith(start) for each, start in zip(read.repeated, told, strict=True))


def test_repeated_keys_of_one_mapping_share_its_path():
    keys = "".join(f"  k{number}: 1\n  k{number}: 2\n" for number in range(3))
    read = yamlfile.read_parts_of_text(f"{'a' * 500}:\n{keys}", "f")
    assert len(read.repeated) == 3
    assert len({id(each.path) for each in read.repeated}) == 1


@all_rows("key", ['"<<"', "!!str <<", "! <<"])
def test_a_key_that_only_looks_like_a_merge_is_a_key(key):
    assert load(f"{key}: {{a: 1}}")[0].value == {"<<": {"a": 1}}


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param("{a: 1, a: 2}", id="a key twice"),
        pytest.param("{a: 1, <<: {a: 2}}", id="a merge"),
    ],
)
def test_messages_about_repeated_keys_do_not_repeat_a_long_path(inner):
    read = yamlfile.read_parts_of_text(f"? {'k' * 100_000}\n: [{', '.join([inner] * 100)}]", "f")
    assert len(read.repeated) == 100
    assert sum(len(str(each)) for each in read.repeated) < 100_000


def test_messages_about_repeated_keys_do_not_repeat_a_long_key():
    merged = ", ".join(["{<<: *a, <<: *b}"] * 100)
    read = yamlfile.read_parts_of_text(
        f"a: &a {{? {'k' * 100_000} : 1}}\nb: &b {{? {'k' * 100_000} : 2}}\nc: [{merged}]"
    )
    assert len(read.repeated) == 100
    assert sum(len(str(each)) for each in read.repeated) < 100_000


def test_an_alias_means_the_last_anchor_before_it():
    documents = load("a: &x {v: 1}\nb: &x\n  v: 2\nc:\n  <<: *x\n  w: 3\n---\nd: &x 1\ne: *x\n")
    assert [each.value for each in documents] == [
        {"a": {"v": 1}, "b": {"v": 2}, "c": {"v": 2, "w": 3}},
        {"d": 1, "e": 1},
    ]
    assert [documents[0].position(paths.parse_path(path)) for path in ("a.v", "c.v", "c.w")] == [(1, 8), (3, 3), (6, 3)]
    assert documents[1].position(("e",)) == (9, 1)


def test_items_of_a_long_json_list_are_found_in_linear_time():
    pod = {"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {"containers": [{"name": "d"}, {"name": "e"}]}}
    (document,) = load(json.dumps({"kind": "List", "items": [pod] * 2000}, indent=1))
    begun = process_time()
    found = [document.position(("items", i, "spec", "containers", 1, "name"))[0] for i in range(2000)]
    assert process_time() - begun < 10  # 0.3 s; minutes if each read began at the start of the text
    assert found == list(range(found[0], found[0] + 2000 * (found[1] - found[0]), found[1] - found[0]))
    assert document.position(("items", 2000, "spec")) == document.position(("items",))


@pytest.mark.parametrize("file", ["x.yaml", "x.json"])
def test_comments_may_follow_objects_in_json(file):
    first, second = load('{"kind": "Pod"}\n# the second\n# object\n{"kind": "Job"} # end', file)
    assert (first.value, second.value) == ({"kind": "Pod"}, {"kind": "Job"})
    assert second.position() == (4, 1)


def test_a_file_named_json_must_be_json():
    with pytest.raises(InputError, match=r"x.json:1:2: not JSON: expecting property name"):
        load("{a: 1}", "x.json")


def test_aliases_cannot_expand_a_file_without_bound():
    bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    with pytest.raises(InputError, match="aliases add more than 100000 values"):
        load(bomb)


YAML = """\
# comment
kind: A
spec:
  base: &base
    gpu: 1
  "nvidia.com/gpu": 2
  list:
    - name: a
      merged:
        <<: *base
        own: 3
      both:
        <<: [{x: 1}, *base]
    - true: b
---
second:
  - [1, 2]
"""


@all_rows(
    "index, path, place",
    [
        (0, "", (2, 1)),
        (0, "spec", (3, 1)),
        (0, 'spec["nvidia.com/gpu"]', (6, 3)),
        (0, "spec.list[0]", (8, 7)),
        (0, "spec.list[0].merged.own", (11, 9)),
        (0, "spec.list[0].merged.gpu", (5, 5)),
        (0, "spec.list[0].both.gpu", (5, 5)),
        (0, "spec.list[0].merged.absent", (9, 7)),
        (0, "spec.list[1].true", (14, 7)),
        (0, "spec.list[2].name", (7, 3)),
        (0, "kind.deeper", (2, 1)),
        (1, "second[0][1]", (17, 9)),
    ],
)
def test_every_path_has_its_place_in_yaml(index, path, place):
    assert load(YAML)[index].position(paths.parse_path(path)) == place


@pytest.mark.parametrize(
    "text, path, place",
    [
        pytest.param("%TAG !e! tag:yaml.org,2002:\n---\na: {b: !e!str 1}\n", "a.b", (3, 5), id="directives"),
        pytest.param("a: 1\n...\n%YAML 1.1\n---\nx: 1\nb:\n  c: 1\n", "b.c", (7, 3), id="directives between"),
        pytest.param("--- {a: 1,\n  b: 2}\n", "b", (2, 3), id="a document on the line of its separator"),
        pytest.param("  a: 1\n  b: 2\n", "b", (2, 3), id="indented as a whole"),
        pytest.param("# \U0001f600\na: \U0001f600\n--- # 2\nc: ä\nb: 2\n", "b", (5, 1), id="characters of many bytes"),
        pytest.param("a: 1\r\n---\r\n# x\r\nb:\r\n- c: 1\r\n", "b[0].c", (5, 3), id="lines of Windows"),
        pytest.param("---\n---\n# empty\n---\na: &x 1\nb: *x\n", "b", (6, 1), id="after empty documents"),
        pytest.param("{! : 1, b: 2}\n", "b", (1, 9), id="a key with nothing but a tag"),
    ],
)
def test_every_document_of_a_text_has_its_own_places(text, path, place):
    assert load(text)[-1].position(paths.parse_path(path)) == place


def test_a_document_gets_its_places_without_the_nodes_of_other_documents():
    places = yamltext.Places(YAML)
    assert [number for number, _ in yamltext.read_documents(places, [])] == [0, 1]
    assert (places.position(0), places.position(1)) == ((2, 1), (16, 1))
    assert places.nodes == {}
    assert places.position(1, ("second",)) == (16, 1)
    assert set(places.nodes) == {1}


@pytest.mark.parametrize(
    "index, path, place",
    [
        (0, "", (1, 1)),
        (1, "", (2, 2)),
        (1, "b[1].c", (3, 2)),
        (1, "b[1]", (2, 12)),
        (1, "b[7]", (2, 3)),
        (1, "d.e", (4, 2)),
    ],
)
def test_every_path_has_its_place_in_json(index, path, place):
    text = '{"a": 1}\n {"b": [1, {\n "c": 2}],\n "d": {}, "s": "}\\"{"}'
    assert load(text)[index].position(paths.parse_path(path)) == place


def leaves(value, path=()):
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))


@given(JSONS.filter(lambda value: isinstance(value, dict | list)))
def test_the_place_of_a_path_is_the_place_of_its_key(value):
    for text in (dump(value), json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        (document,) = load(text)
        lines = text.split("\n")
        for path, _ in leaves(value):
            line, column = document.position(path)
            rest = lines[line - 1][column - 1 :]
            if path and isinstance(path[-1], str) and path[-1].isascii() and path[-1].isalnum():
                assert path[-1].startswith(rest.lstrip("\"'?| ")[:1])


@given(JSONS.filter(lambda value: value is not None))
def test_dumped_yaml_is_read_back(value):
    (document,) = load(f"---\n{dump([value])}")
    assert document.value == [value]


def test_dump_keeps_order_and_repeats_instead_of_aliasing():
    shared = {"b": "x\ny\n", "a": [1.5, None, True]}
    assert dump({"one": shared, "two": shared}).count("x") == 2
    assert dump({"z": 1, "a": "yes"}) == 'z: 1\na: "yes"\n'


def test_a_value_without_text_has_no_place():
    assert Document({"a": 1}).position(("a",)) == (0, 0)


def test_folders_are_listed_in_order_without_hidden_files(tmp_path):
    for name in ("b.yaml", "a.json", "sub/c.yml", "sub/d.ndjson", "sub/e.jsonl", ".git/x.yaml", ".e.yaml", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a: 1")
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data/f.yaml").write_text("a: 1")
    (tmp_path / "f.yaml").symlink_to("..data/f.yaml")
    found = discover([tmp_path, tmp_path / "notes.txt", tmp_path / "b.yaml", "-"])
    names = [str(path.relative_to(tmp_path)) if path.is_absolute() else str(path) for path in found]
    assert names == ["a.json", "b.yaml", "f.yaml", "sub/c.yml", "sub/d.ndjson", "sub/e.jsonl", "notes.txt", "-"]


@pytest.mark.parametrize(
    ("folder", "mark"),
    [
        pytest.param("vendor", "vendor/modules.txt", id="modules of Go"),
        pytest.param("vendor", "Gopkg.lock", id="dep"),
        pytest.param("vendor", "glide.lock", id="glide"),
        pytest.param("vendor", "vendor/autoload.php", id="Composer"),
        pytest.param("vendor", "jsonnetfile.lock.json", id="jsonnet-bundler"),
        pytest.param("node_modules", "package.json", id="npm"),
        pytest.param("env", "env/pyvenv.cfg", id="a virtual environment"),
        pytest.param("testdata", "pod_test.go", id="test data of Go"),
        pytest.param("test_data", "pod_test.py", id="test data"),
    ],
)
def test_dependencies_and_test_data_are_not_listed_below_others(folder, mark, tmp_path):
    (tmp_path / "app" / folder / "k8s.io").mkdir(parents=True)
    (tmp_path / "app" / folder / "k8s.io/node.yaml").write_text("a: 1")
    (tmp_path / "app/pod.yaml").write_text("a: 1")
    (tmp_path / "app" / mark).touch()
    names = {path.name for path in discover([tmp_path])} - {"package.json", "jsonnetfile.lock.json"}
    assert names == {"pod.yaml"}
    assert [path.name for path in discover([tmp_path / "app" / folder])] == ["node.yaml"]


def test_a_vendor_folder_that_no_package_manager_fills_is_listed(tmp_path):
    (tmp_path / "vendor/cert-manager").mkdir(parents=True)
    (tmp_path / "vendor/cert-manager/all.yaml").write_text("a: 1")
    (tmp_path / "vendir.lock.yml").write_text("a: 1")
    assert [path.name for path in discover([tmp_path])] == ["vendir.lock.yml", "all.yaml"]


def test_a_pipe_in_a_folder_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    listed = listing([tmp_path])
    assert not listed.files
    assert [each.file.path.name for each in listed.not_read] == ["gone.yaml", "pipe.yaml"]
    assert listed.not_read[1].reason == "it is not a regular file"
    with pytest.raises(InputError, match=r"pipe.yaml: is not read: it is not a regular file"):
        discover([tmp_path])
    assert list(discover([tmp_path / "pipe.yaml"])) == [tmp_path / "pipe.yaml"]


def test_absent_places_are_reported_together(tmp_path):
    with pytest.raises(InputError, match=r"x: no such file or folder\n.*y: no such"):
        discover([tmp_path / "x", tmp_path / "y"])


def test_files_are_read(tmp_path, monkeypatch):
    file = tmp_path / "a.yaml"
    file.write_text("a: 1")
    (document,) = read(file)
    assert (document.value, document.file) == ({"a": 1}, str(file))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: 2")))
    (document,) = read("-")
    assert (document.value, document.file) == ({"a": 2}, "<stdin>")


def test_unreadable_files_are_reported(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9")
    with pytest.raises(InputError, match=r"latin.yaml:2: is not UTF-8 text"):
        read(tmp_path / "latin.yaml")
    for name in ("powershell.yaml", "powershell.json"):
        (tmp_path / name).write_bytes('{"a": 1}'.encode("utf-16"))
        with pytest.raises(InputError, match=rf"{name}:1: is not UTF-8 but UTF-16; save the file as UTF-8"):
            read(tmp_path / name)
    with pytest.raises(InputError, match=r"absent.yaml: cannot be read: no such file or directory"):
        read(tmp_path / "absent.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(InputError, match="the file is larger than 1 MiB; split it"):
        yamlfile.text(tmp_path / "large.yaml", 1 << 20)


def test_a_folder_that_cannot_be_listed_is_reported_and_others_are_read(tmp_path, monkeypatch):
    (tmp_path / "a.yaml").write_text("a: 1")

    def walk(folder, onerror):
        onerror(PermissionError(13, "Permission denied", f"{folder}/secret"))
        yield str(folder), [], ["a.yaml"]

    monkeypatch.setattr("os.walk", walk)  # root may list everything
    listed = listing([tmp_path])
    assert [file.path.name for file in listed.files] == ["a.yaml"]
    assert [str(problem) for problem in listed.problems] == [f"{tmp_path}/secret: cannot be listed: permission denied"]
    with pytest.raises(InputError, match="cannot be listed"):
        discover([tmp_path])


@pytest.mark.parametrize(
    ("file", "text", "values", "problems"),
    [
        pytest.param(
            "x.ndjson",
            '{"a": 1}\n{"a": \n\n{"b": 2}\n[3]\n',
            [(1, {"a": 1}), (4, {"b": 2}), (5, [3])],
            ["2:7"],
            id="lines",
        ),
        pytest.param("x.jsonl", '{"a": \n{"b": 2}', [(2, {"b": 2})], ["1:7"], id="the first line"),
        pytest.param(
            "", '{"a": 1}\noops\n{"b": 2}', [(1, {"a": 1}), (3, {"b": 2})], ["2:1"], id="lines that look like JSON"
        ),
        pytest.param("", '{"a":\n{"b": 2}', [(2, {"b": 2})], ["1:6"], id="one good line"),
        pytest.param("x.ndjson", "nothing\n", [], ["1:1"], id="no line at all"),
        pytest.param("x.json", '{\n  "a": 1\n}\n{\n  "b":\n}\n', [], ["6:1"], id="indented JSON is read as one"),
        pytest.param(
            "x.yaml",
            "a: 1\n---\nb: {{ .b }}\n  c\n--- # third\nd: 4\n",
            [(1, {"a": 1}), (6, {"d": 4})],
            ["3:"],
            id="YAML documents",
        ),
        pytest.param(
            "x.yaml", "a: {\n---\nb: 2\n---\nc: }\n", [(3, {"b": 2})], ["2:1", "5:4"], id="two of three documents"
        ),
        pytest.param("x.yaml", "a: {\n", [], ["2:1"], id="one document"),
        pytest.param(
            "x.yaml",
            '---\n{"a": 1}\n---\n{"b": }\n',
            [(2, {"a": 1}), (4, {"b": None})],
            [],
            id="JSON between separators",
        ),
    ],
)
def test_documents_next_to_a_broken_one_are_read(file, text, values, problems):
    found = yamlfile.read_parts_of_text(text, file)
    assert [(each.position()[0], each.value) for each in found.documents] == values
    assert [each.index for each in found.documents] == list(range(len(found.documents)))
    assert len(found.problems) == len(problems)
    for problem, place in zip(found.problems, problems, strict=True):
        assert f"{problem.line}:{problem.column}".startswith(place)


def test_floats_are_unchanged_after_a_round_trip():
    assert load(dump([math.pi, 1e-300, 1e300]))[0].value == [math.pi, 1e-300, 1e300]


@pytest.mark.parametrize("word", ["on", "Off", "yes", "NO", "y"])
def test_kustomize_reads_words_of_yaml_1_1_as_texts(word):
    text = f"a: {word}\nb: [--feature, {word}]\nc: true\n---\nd: '{word}'\n"
    (by_kubectl, _), (by_kustomize, second) = (
        [each.value for each in yamlfile.read_parts_of_text(text, by_kustomize=each).documents]
        for each in (False, True)
    )
    assert by_kubectl["a"] in (True, False)
    assert (by_kustomize, second) == ({"a": word, "b": ["--feature", word], "c": True}, {"d": word})
