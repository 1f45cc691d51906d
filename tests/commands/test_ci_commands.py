"""No CI system obeys a text of an object, a policy or a file name, in any format and for any width.

GitHub Actions obeys `::` at the start of a line, also after blanks, and `##[` anywhere. Azure Pipelines and TeamCity
obey `##vso[` and `##teamcity[`. Buildkite folds logs at `---`, `+++` and `~~~` in the first column, so no line of a
text report begins with a word of an object.
"""

from __future__ import annotations

import copy
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rows import some_quickly
from webhook.apimachinery.attributes import JSON
from webhook.cli import run_command_line, run_with_traceback
from webhook.report.formats import format_names
from webhook.report.screen import Screen
from webhook.yamltext import yamlfile

OBEYED = re.compile(r"^\s*::|##\[|##vso\[|##teamcity\[")
ROOT = Path(__file__).parents[2]
SAMPLES = (
    "deploy/samples/manifests/volcano-job.yaml",
    "examples/research-team/broken/trainjob-queue.yaml",
    "examples/research-team/broken/pytorchjob-storage.yaml",
)
WORDS = ("::stop-commands::x", "::error file=a,line=1::b", "##[error]c", "##vso[task.x]d", "##teamcity[e]", "--- f")
HOSTILE = (
    *tuple(f"{'w' * length} {' '.join(WORDS)}" for length in (1, 31, 38, 60, 71)),
    "".join(f"\n{word}\r{word}\u2028  {word}" for word in WORDS),
    *WORDS,
    " ".join(f"{'v' * 36} {word}" for word in WORDS),
)
WIDTHS = ("", "0", "1", "80")
FILE = "a\n::error::b ##[c] ::stop-commands::d.json"


def mutations(value: JSON) -> Iterator[JSON]:
    """Yield copies of the object. Each copy has a hostile text in place of one text or key."""
    for number, path in enumerate(paths_of_texts(value)):
        made = copy.deepcopy(value)
        *above, last = path
        holder: Any = made
        for step in above:
            holder = holder[step]
        text = HOSTILE[number % len(HOSTILE)]
        holder[last] = text
        yield made
        if isinstance(last, str) and len(above) > 1:
            renamed = copy.deepcopy(made)
            holder = renamed
            for step in above:
                holder = holder[step]
            holder[HOSTILE[(number + 1) % len(HOSTILE)]] = holder.pop(last)
            yield renamed


def paths_of_texts(value: JSON, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths_of_texts(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths_of_texts(inner, (*path, index))
    elif path and path[0] not in ("apiVersion", "kind"):
        yield path


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file with a hostile name, and with a hostile text in one field of each object."""
    folder = tmp_path_factory.mktemp("objects")
    read = [each.value for file in yamlfile.discover(ROOT / name for name in SAMPLES) for each in yamlfile.read(file)]
    made = [mutated for value in read for mutated in mutations(value)]
    assert len(made) > 100
    (folder / FILE).write_text(json.dumps(made))
    (folder / f"{FILE}.yaml").write_text("kind: [\n::error::x ##[y]\n")
    return folder


def obeyed(text: str) -> list[str]:
    return [line for line in text.split("\n") if OBEYED.search(line)]


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = run_with_traceback(lambda: run_command_line(arguments))
    return (code, *capsys.readouterr())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("verb", ["audit", "replay"])
def test_reports_for_people(
    verb: str,
    width: str,
    objects: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    file = tmp_path / FILE
    file.write_text(json.dumps(json.loads((objects / FILE).read_text())[WIDTHS.index(width) :: len(WIDTHS)]))
    code, out, err = run([verb, str(file), *(["--explain"] if verb == "replay" else [])], capsys)
    assert code in (1, 2, 3)
    assert "::" in out
    assert obeyed(out + err) == []
    assert [line for line in out.split("\n") if line.startswith(("---", "::", "w", "v"))] == []


@pytest.mark.parametrize("verb", some_quickly(["audit", "replay", "test"], 3))
def test_every_format(verb: str, objects: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = str(objects)
    if verb == "replay":
        named = str(objects / FILE)
    if verb == "test":
        named = str(tmp_path / "policies" / FILE)
        Path(named).mkdir(parents=True)
        cases = [
            {"name": f"{text}{number}", "input": each, "expect": {"allowed": number % 2 == 0, "message": text}}
            for number, (text, each) in enumerate(zip(HOSTILE, json.loads((objects / FILE).read_text()), strict=False))
        ]
        (Path(named) / "suite.yaml").write_text(json.dumps({"cases": cases}))
    outputs = [f"--output={name}={tmp_path / name}" for name in format_names()]
    code, out, err = run([verb, *outputs, named], capsys)
    assert code in (1, 2, 3), err
    assert obeyed(out + err) == []
    for name in format_names():
        text = (tmp_path / name).read_text()
        if name == "github":  # claimgate itself wrote each of these commands
            lines = text.split("\n")
            assert {line.split(" ")[0] for line in lines if line} <= {"::error", "::warning", "::notice"}
            assert [line for line in lines if OBEYED.search(line.removeprefix("::"))] == []
        else:
            assert obeyed(text) == [], name
    for name in ("policyreport", "openreports"):  # decoded, each text equals the original text
        kept = (tmp_path / name).read_text()
        assert not kept or any(
            "\n::error" in json.dumps(each.value).replace("\\n", "\n") for each in yamlfile.load(kept)
        )


def test_simulations(
    objects: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number, each in enumerate(json.loads((objects / FILE).read_text())[::16]):
        monkeypatch.setenv("COLUMNS", WIDTHS[number % len(WIDTHS)])
        file = tmp_path / f"{number}{FILE}"
        file.write_text(json.dumps(each))
        _, out, err = run(["simulate", str(file)], capsys)
        assert obeyed(out + err) == []
        assert [line for line in out.split("\n") if line.startswith(("---", "::", "w", "v"))] == []


def test_a_text_without_ci_commands_is_written_unchanged() -> None:
    """A text without commands is written unchanged, and OBEYED matches a command. This shows that the tests above can
    fail.
    """
    harmless = "std::vector a::b #[x] ## title # [y] " * 9
    assert Screen(width=40).wrapped(harmless, "  ") == textwrap.wrap(
        harmless, 40, initial_indent="  ", subsequent_indent="  "
    )
    assert yamlfile.dump({"a": "x::y ##z\nb"}) == "a: |-\n  x::y ##z\n  b\n"
    assert OBEYED.search("  ::error::x")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"a": f"{'x' * 130} ::stop-commands::x"}, id="a word after the width of a line"),
        pytest.param({"a": "x\n::error::y"}, id="a line of a text"),
        pytest.param({"a ##[b": ["##[error]z", "#\u202e\n##[y"]}, id="a key"),
        pytest.param({f"{'k' * 130} ::b": " ::error::" * 60}, id="a long key"),
        pytest.param("::error::x", id="a document that is a text"),
        pytest.param(["##vso[x]", "##teamcity[y]", "\\u0023#[z]"], id="other systems, and an escape of its own"),
    ],
)
def test_yaml_reads_back_as_the_same_value(value: JSON) -> None:
    written = yamlfile.dump(value)
    assert obeyed(written) == []
    assert [each.value for each in yamlfile.load(written)] == [value]
