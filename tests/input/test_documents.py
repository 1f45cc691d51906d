"""The inputs on the command line: files, folders, stdin and lists, each document with its place."""

import io
import sys

import pytest

from webhook.input import documents
from webhook.yamltext.source_line import Place

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "b.yaml").write_text(f"{POD}---\n# empty\n---\n{POD}")
    (tmp_path / "a.ndjson").write_text('{"kind": "Pod"}\n{"kind": "Job"}\n')
    (tmp_path / "notes.txt").write_text("not looked at")
    return tmp_path


def test_a_folder_gives_its_documents_in_order_with_their_places(folder):
    inputs = documents.read_documents([folder])
    assert [(each.source, each.index, each.place().line) for each in inputs.documents] == [
        (f"{folder}/a.ndjson", 0, 1),
        (f"{folder}/a.ndjson", 1, 2),
        (f"{folder}/b.yaml", 0, 1),
        (f"{folder}/b.yaml", 1, 7),
    ]
    assert (inputs.files, inputs.problems) == (2, ())


def test_a_file_that_is_named_twice_is_read_once(folder):
    assert len(documents.read_documents([folder, folder / "b.yaml"]).documents) == 4


def test_a_dash_means_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))
    [only] = documents.read_documents(["-"]).documents
    assert only.source == "<stdin>"
    assert only.place(("metadata", "name")) == Place(file="<stdin>", line=3, column=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n- kind: Job\n",
            [("Pod", ("items", 0)), ("Job", ("items", 1))],
            id="a List",
        ),
        pytest.param('{"kind":"PodList","apiVersion":"v1","items":[{}]}', [("Pod", ("items", 0))], id="a typed list"),
        pytest.param('[{"kind":"Pod"},[{"kind":"Job"}]]', [("Pod", (0,)), ("Job", (1, 0))], id="JSON arrays in arrays"),
        pytest.param("kind: List\nitems: null\n", [], id="an empty List"),
        pytest.param("kind: AllowList\nspec: {}\n", [("AllowList", ())], id="a kind that only ends in List"),
    ],
)
def test_a_list_is_split_into_its_objects(text, expected, tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text(text)
    assert [(each.value["kind"], each.path) for each in documents.read_documents([file]).documents] == expected


@pytest.mark.parametrize(("text", "count"), [("[0.5, 1, 2]", 1), ('["a", "b"]', 1), ("[]", 0), ("[1, {}, 2]", 3)])
def test_an_array_of_data_is_one_document(text, count, tmp_path):
    file = tmp_path / "samples.json"
    file.write_text(text)
    assert len(documents.read_documents([file]).documents) == count


def functions_entered(work):
    """Count the functions that Python enters. Resuming a generator also counts."""
    count = 0

    def note(_frame, what, _arg):
        nonlocal count
        count += what == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


NESTED = {
    "arrays": ("[", "]"),
    "lists": ('{"kind": "List", "apiVersion": "v1", "items": [', "]}"),
}


@pytest.mark.parametrize(("begin", "end"), NESTED.values(), ids=NESTED)
def test_an_item_in_nested_lists_costs_one_step(begin, end):
    items = ",".join(['{"kind": "Pod"}'] * 500)

    def read(depth):
        read = documents.documents_of_text(begin * depth + items + end * depth, "x.json")
        assert len({each.place().line for each in read.documents}) == 1

    read(1)
    assert functions_entered(lambda: read(90)) < 12 * functions_entered(
        lambda: read(1)
    )  # at most eight lists are searched for a line


def test_an_item_in_too_many_nested_lists_has_the_line_of_an_outer_list():
    text = "[\n" * 12 + '{"kind": "Pod"},\n{"kind": "Job"}' + "]" * 12
    read = documents.documents_of_text(text, "x.json")
    assert [each.place().line for each in read.documents] == [9, 9]
    read = documents.documents_of_text('[\n[\n{"kind": "Pod"},\n{"kind": "Job"}]]', "x.json")
    assert [each.place().line for each in read.documents] == [3, 4]


def test_very_many_patterns_are_each_compiled_once(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}.yaml").write_text(POD)
    patterns = [f"a{number}*b" for number in range(1_000)]
    (tmp_path / ".claimgateignore").write_text("\n".join([*patterns, "1?.yaml", "!15.*"]))
    listed = []
    taken = functions_entered(lambda: listed.append(documents.list_sources([tmp_path])))
    assert len(listed[0].sources) == 11
    assert taken < 400 * len(patterns)  # to compile one pattern, `fnmatch` enters about 400 functions


def test_items_of_a_list_know_their_lines(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text("kind: List\nitems:\n- kind: Pod\n- kind: Job\n  spec: {a: 1}\n")
    second = documents.read_documents([file]).documents[1]
    assert (second.place().line, second.place(("spec", "a")).line, second.place(("spec", "b")).line) == (4, 5, 5)


def test_unreadable_files_do_not_hide_other_files(folder):
    (folder / "broken.yaml").write_text("kind: [")
    (folder / "binary.json").write_bytes(b'\xff\xfe{"kind": "Pod"}')
    inputs = documents.read_documents([folder, folder / "absent"])
    assert len(inputs.documents) == 4
    named = sorted(problem.file.rpartition("/")[2] for problem in inputs.problems)
    assert named == ["absent", "binary.json", "broken.yaml"]


OTHERS = {
    "tsconfig.json": '{\n  // comments\n  "compilerOptions": {"kindOf": 1,},\n}\n',
    "devcontainer.json": '{"name": "x", /* a comment */ "image": "y"}',
    "broken.yaml": "a: [1, 2\nb: }}: d\n",
    "fixture.yml": "what: kind: apiVersion\n\t- x: [\n",
    "latin.yaml": b"name: M\xfcller\n",
    "userdata.yaml": 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n--B\n\n'
    "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n\n--B--\n",
}
FILLED_IN = {
    "percent.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %namespace%-serving\n",
    "at.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: @NAME@\n",
    "lines.yaml": "apiVersion: v1\nkind: ConfigMap\ndata:\n${DATA}\n",
    "brackets.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: [YOUR REGISTRY]/image:1\n",
    "braces.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: {registry}/image:{tag}\n",
    "erb.yaml": "apiVersion: v1\nkind: ConfigMap\ndata:\n<% if a %>\n  a: b\n<% end %>\n",
    "ytt.yaml": "kind: Pod\nspec:\n  #@ if data.values.quiet:\n  priority: 1\n  #@ else:\n  priority: 2\n  #@ end\n",
    "value.yaml": "kind: Pod\nmetadata:\n  name: #@ data.values.name\n",
    "token.yaml": "kind: Service\nspec:\n  ports:\n  - port: #{PORT}#\n",
    "octopus.yaml": "kind: Pod\nspec:\n  containers:\n  - image: #{Image.Name}\r\n",
    "items.yaml": "kind: Pod\nspec:\n  containers:\n  - args:\n    - #{{Mode}}#\n",
    "overlay.yaml": "#@overlay/match by=overlay.all\n---\nkind: Pod\n",
    "line.yaml": "kind: Pod\nspec:\n  containers: []\n  #{VOLUMES}#\n",
}
MANIFESTS = {
    "flow.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: a}\n",
    "indented.yaml": "  apiVersion: v1\n kind: Pod\n",
    "half.yaml": "kind: Pod\nmetadata: {name: a\n",
    "listed.yaml": "- kind: Pod\n  metadata: {name: a\n",
    "comments.json": '{\n  // a comment\n  "kind": "Pod"\n}\n',
    "short.json": '{"metadata": {}, "apiVersion": "v1"',
    "list.yaml": "apiVersion: v1\nkind: Pod\nspec: {containers: []}\nargs: [a]b, c]\n",
    "quoted.yaml": '"apiVersion": v1\nkind: [\n',
    "latin.yaml": b"apiVersion: v1\nmetadata: {name: M\xfcller}\n",
    "wide.yaml": "apiVersion: v1\nkind: Pod\n".encode("utf-16"),
    "comment.yaml": "kind: [ #@param the kind\nspec: {} # see #@ below\n",
    "format.yaml": "apiVersion: v1\nkind: ConfigMap\ndata: {day: %Y-%m-%d, at: @, rate: 5%}\n",
}


def written(folder, files):
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_other_files_are_an_error_only_if_they_are_named(tmp_path):
    folder = written(tmp_path, OTHERS)
    inputs = documents.read_documents([folder])
    assert (inputs.documents, inputs.problems) == ((), ())
    assert {each.file for each in inputs.others} == {f"{folder}/{name}" for name in OTHERS}
    named = documents.read_documents([folder, *(folder / name for name in OTHERS)])
    assert {each.file for each in named.problems} == {f"{folder}/{name}" for name in OTHERS}
    assert named.others == ()


def test_a_text_in_which_a_tool_replaces_words_is_a_template(tmp_path):
    inputs = documents.read_documents([written(tmp_path, FILLED_IN)])
    assert (inputs.documents, inputs.problems, inputs.repeated, inputs.others) == ((), (), (), ())
    assert {each.file for each in inputs.templates} == {f"{tmp_path}/{name}" for name in FILLED_IN}


def test_a_comment_in_braces_is_no_template(tmp_path):
    note = "#{note}\nkind: Pod\nspec:\n  #{{ see_below }}\n  #{below}\n  containers: []\n"
    inputs = documents.read_documents([written(tmp_path, {"note.yaml": note})])
    assert (len(inputs.documents), inputs.templates) == (1, ()), "a line with only #{note} is a comment of YAML"


def test_a_broken_manifest_is_an_error_wherever_it_is(tmp_path):
    inputs = documents.read_documents([written(tmp_path, MANIFESTS)])
    assert {each.file for each in inputs.problems} == {f"{tmp_path}/{name}" for name in MANIFESTS}
    assert inputs.others == ()
