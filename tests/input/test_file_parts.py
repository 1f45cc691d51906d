"""Large files are read in parts of whole documents. Together, the parts are the file."""

import io
import sys

import pytest

from webhook.errors import InputError
from webhook.input import document_stream
from webhook.input.document_stream import DocumentStream, RereadableFiles, read_documents_of_part
from webhook.yamltext import yamlfile

POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{0}}}\nspec:\n  note: |\n    --- no document\n"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(document_stream, "_BLOCK", 200)


def parts(path):
    return list(RereadableFiles().read_parts(str(path)))


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("mark", ["---\n", "---\n# c\n", "--- # c\n"])
def test_parts_of_a_file_are_whole_documents(tmp_path, mark, end):
    file = tmp_path / "a.yaml"
    file.write_text(mark.join(POD.format(number) for number in range(20)) + end)
    read_parts = parts(file)
    assert len(read_parts) > 5
    assert "".join(part.text for part in read_parts) == file.read_text()
    documents = [
        each for part in read_parts for each in yamlfile.read_parts_of_text(part.text, "a", part.above).documents
    ]
    whole = yamlfile.read(file)
    assert [each.value for each in documents] == [each.value for each in whole]
    assert [each.position(("metadata", "name")) for each in documents] == [
        each.position(("metadata", "name")) for each in whole
    ]


def test_json_lines_come_in_whole_lines(tmp_path):
    file = tmp_path / "a.ndjson"
    file.write_text("".join(f'{{"a": "{"x" * number}"}}\n' for number in range(60)))
    assert len(parts(file)) > 3
    assert all(part.text.endswith("\n") for part in parts(file))
    assert "".join(part.text for part in parts(file)) == file.read_text()


@pytest.mark.parametrize(
    "text",
    [
        '{"items": [' + ",\n".join(['{"a": "---"}'] * 90) + "]}",
        "%YAML 1.1\n---\n" + "a: 1\n---\n" * 90,
        "a: 1\n---\n" * 90 + "...\n%YAML 1.1\n---\nb: 1\n",
    ],
    ids=["JSON", "a directive", "an end of a document"],
)
def test_a_text_that_only_a_parser_can_split_is_read_completely(tmp_path, text):
    file = tmp_path / "a.yaml"
    file.write_text(text)
    read_parts = parts(file)
    assert "".join(part.text for part in read_parts) == text
    assert "%YAML" not in read_parts[-1].text or "\n---\n" in read_parts[-1].text


def test_standard_input_is_read_once_and_used_several_times(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n---\nb: 2\n")))
    files = RereadableFiles()
    first = [part.text for part in files.read_parts("-")]
    assert [part.text for part in files.read_parts("-")] == first == ["a: 1\n---\nb: 2\n"]
    files.close()


def test_a_too_large_document_is_reported_and_earlier_documents_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(document_stream, "MAX_BYTES", 1000)
    file = tmp_path / "a.yaml"
    file.write_text("a: 1\n" * 20 + "---\nb: |\n" + "  x\n" * 2000)
    given = RereadableFiles().read_parts(str(file))
    assert next(given).text == "a: 1\n" * 20
    with pytest.raises(InputError, match="a document is larger than 0 MiB; split it"):
        next(given)


def test_bytes_that_are_not_text_are_reported_with_their_line(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: 1\n---\n" * 60 + b"b: \xff\n")
    stream = DocumentStream([file])
    assert [str(problem) for part in stream.parts() for problem in read_documents_of_part(part).problems] == [
        f"{file}:121: is not UTF-8 text; expected YAML or JSON"
    ]
