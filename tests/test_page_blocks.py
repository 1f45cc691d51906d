"""The commands of a page work: its blocks run in order, in one shell, in a copy of the checkout."""

from __future__ import annotations

import difflib
import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

from tests import quick_yaml
from tests.literals import validating
from tests.page_blocks import BLOCK, PAGES, ROOT, Block, blocks_of, outputs_of, shows
from webhook.cli import run_command_line
from webhook.manifests.policy_exceptions import is_policy_exception, parse_policy_exception
from webhook.suites.suite_model import suite_schema
from webhook.typer_application import create_typer_application

BLOCKS = {path.relative_to(ROOT).as_posix(): [*blocks_of(path.read_text())] for path in PAGES}
ALL = [(page, block) for page, blocks in BLOCKS.items() for block in blocks]
LANGUAGES = {"console", "bash", "python", "yaml", "text", "cel"}
INDENTED = re.compile(r"(?<=\n)(?P<before>[^\n]*)\n\n(?P<indent> {4,})(?! |- )(?P<line>[^\n]+)")
FENCE = re.compile(r"^[ >]*(?:```|~~~).*$", re.MULTILINE)
COMMAND = re.compile(r"^\s*(?:\$ )?(claimgate|kubectl|helm) [^|>#\n]+", re.MULTILINE)


NIGHTLY = {f"docs/servers/{name}.md" for name in ("kinds", "other-servers", "ray-serve", "sglang")} | {
    "docs/shared-gpus.md"
}
"""Pages with the command of docs/servers/vllm.md and another file"""
SLOW = {"docs/tour.md"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.nightly] * (page in NIGHTLY) + [pytest.mark.slow] * (page in SLOW))
        for page, blocks in BLOCKS.items()
        if any(block.is_run for block in blocks)
    ],
)
def test_the_blocks_of_a_page_work_in_one_shell(page: str, tmp_path: Path) -> None:
    wrong = []
    for block, outputs in outputs_of(BLOCKS[page], tmp_path / "checkout"):
        for (command, shown), printed in zip(block.steps, outputs, strict=True):
            if block.language == "console" and not shows(shown, printed):
                difference = difflib.unified_diff(
                    shown.splitlines(), printed.splitlines(), page, "printed", lineterm=""
                )
                wrong.append("\n".join([f"$ {command}", *difference]))
            elif block.language == "bash" and "exit code " in printed:
                wrong.append(f"$ {command}{printed}")
    if wrong:
        pytest.fail("\n".join([*wrong, "`python -m tests.test_readme` writes blocks anew"]), pytrace=False)


def test_every_code_block_has_a_language_and_a_reason_if_it_is_not_run() -> None:
    assert [(page, block.text) for page, block in ALL if block.language not in LANGUAGES] == []
    assert [(page, block.marker) for page, block in ALL if block.marker not in ("", "cluster", "not run", "file")] == []
    reasons = [(page, block.reason) for page, block in ALL if block.marker in ("cluster", "not run")]
    assert [(page, reason) for page, reason in reasons if len(reason.split()) < 3] == []
    typed = [(page, block.text) for page, block in ALL if block.language == "text" and re.search("^[$] ", block.text)]
    assert typed == [], "a block with a command is `console`"


def test_a_command_of_a_bash_block_that_fails_is_reported(tmp_path: Path) -> None:
    text = "false\nclaimgate audit examples/research-team/broken/inference-gpu.yaml\ncat no-such-file\n"
    [(_, [printed])] = outputs_of([Block("bash", text, "", "")], tmp_path / "checkout")
    assert re.findall("exit code.*", printed) == ["exit code 1: false", "exit code 1: cat no-such-file"]


def test_every_page_that_people_read_is_searched_for_blocks() -> None:
    """Pages of rules are generated, and tests/policies/test_rules.py audits their examples."""
    written = {
        *ROOT.glob("*.md"),
        *(path for folder in ("docs", "deploy", "examples", "policies") for path in (ROOT / folder).rglob("*.md")),
    }
    assert written - {*PAGES} == {*(ROOT / "docs" / "rules").glob("*.md")}


@pytest.mark.parametrize("page", BLOCKS)
def test_every_fence_of_a_page_belongs_to_a_block(page: str) -> None:
    rest = BLOCK.sub("", (ROOT / page).read_text())
    assert FENCE.findall(rest) == [], "write ``` and the language alone on a line, and ``` at the end"


def test_no_code_block_is_indented() -> None:
    indented = [
        (path.relative_to(ROOT).as_posix(), match["line"])
        for path in PAGES
        for match in INDENTED.finditer(re.sub(r"```.*?\n *```", "", path.read_text(), flags=re.DOTALL))
        if len(match["indent"]) >= 4 + _width_of_list_marker(match["before"])
    ]
    assert indented == [], "fence the block, and say with the language what it is"


def _width_of_list_marker(line: str) -> int:
    """Return the width of the marker of a list item, because its indentation does not mark code. Outside of lists,
    return 0.
    """
    marker = re.match(r" *(?:[-*]|\d+\.) +| {2,3}(?=\S)", line)
    return len(marker[0]) if marker else 0


def test_documented_cluster_commands_use_existing_verbs_flags_and_folders() -> None:
    known = dict(flags_of_verbs())
    wrong = []
    for page, block in ALL:
        for match in COMMAND.finditer(block.text) if block.marker in ("cluster", "not run") else ():
            words = shlex.split(match[0].replace("$ ", "", 1))
            flags = {word.partition("=")[0] for word in words if word.startswith("--")}
            if words[0] == "claimgate":
                name = " ".join(words[1:3]) if " ".join(words[1:3]) in known else words[1]
                wrong += [(page, name, flag) for flag in flags if flag not in known.get(name, ())]
                wrong += [(page, name)] if name not in known else []
            folders = [word for word in words if re.match(r"(?:deploy|examples|policies|docs)/", word)]
            wrong += [(page, folder) for folder in folders if not (ROOT / folder).exists()]
    assert wrong == []


def flags_of_verbs():
    group = typer.main.get_command(create_typer_application())
    for verb in group.list_commands(None):
        command = group.get_command(None, verb)
        for name, inner in getattr(command, "commands", {}).items():
            yield f"{verb} {name}", {flag for each in inner.params for flag in each.opts}
        yield verb, {flag for each in command.params for flag in each.opts}


@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(page, block, id=f"{page} {block.text.splitlines()[0]}")
        for page, block in ALL
        if block.language == "yaml"
    ],
)
def test_yaml_of_a_page_is_what_its_reader_accepts(
    page: str, block: Block, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = [*quick_yaml.load_all(block.text)]
    file, text = tmp_path / "block.yaml", re.sub(r"\b20\d\d-\d\d-\d\d\b", "2999-01-31", block.text)
    file.write_text(text)
    if page in READ_BY:
        assert Path(page).name in (ROOT / READ_BY[page]).read_text()
    for document in documents if page not in READ_BY and block.marker != "not run" else ():
        if isinstance(document, list):
            assert run_command_line(["audit", "--workloads", str(file), str(ROOT / "examples/first-policy")]) == 0
        elif is_policy_exception(document):
            parse_policy_exception(document)
        elif "kind" in document:
            command = ["policies", "check", str(tmp_path)] if "Policy" in document["kind"] else ["audit", str(file)]
            assert run_command_line(command) == 0
        elif "cases" in document:
            from jsonschema import Draft202012Validator  # its import compiles the grammar of IRIs for two seconds

            assert [error.message for error in Draft202012Validator(suite_schema()).iter_errors(document)] == []
        elif document.keys() <= {"metadata", "spec"}:
            _assert_that_this_part_of_an_object_excepts_a_finding(text, tmp_path, capsys)
        else:
            (tmp_path / "policies" / "site").mkdir(parents=True)
            (tmp_path / "cluster").mkdir()
            assert run_command_line(["config", "check", str(file)]) == 0


READ_BY = {
    "docs/clusters.md": "tests/e2e/test_clusters_page.py",
    "docs/gitops.md": "tests/policies/test_gitops.py",
    "docs/integrations.md": "tests/test_integrations.py",
}
"""Pages with YAML that other programs read, or that a test installs, with the file of the test"""


def _assert_that_this_part_of_an_object_excepts_a_finding(
    part: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fail unless this part of an object excepts one finding of a broken rule, without a warning."""
    if part.startswith("spec:"):
        broken = (ROOT / "examples/research-team/broken/mpijob-slots.yaml").read_text()
        text = broken.replace("spec:\n  slotsPerWorker: 4\n", part)
        assert text != broken
    else:
        container = "{name: c, image: example.com/c:1, resources: {limits: {nvidia.com/gpu: 500m}}}"
        text = f"apiVersion: v1\nkind: Pod\n{part}  name: p\nspec: {{containers: [{container}]}}\n"
    (folder / "object.yaml").write_text(text)
    (folder / "site.yaml").write_text('ignoreAnnotations: ["*"]\nignoreComments: ["*"]\n')
    context = str(ROOT / "examples/research-team/cluster")
    where = [str(folder / "object.yaml"), "--config", str(folder / "site.yaml"), "--context", context]
    assert run_command_line(["audit", *where]) == 0
    printed = capsys.readouterr()
    assert "left out: 1 finding by" in printed.out
    assert "warning" not in printed.err


@pytest.mark.parametrize(
    ("page", "line"),
    [(page, line) for page, block in ALL if block.language == "cel" for line in block.text.splitlines()],
)
def test_each_line_of_cel_is_an_expression(page: str, line: str, tmp_path: Path) -> None:
    """tests/facts/test_reference.py compiles the examples of facts."""
    if page == "docs/facts.md":
        assert page.rpartition("/")[2] in (ROOT / "tests/facts/test_reference.py").read_text()
        return
    variables = [{"name": "line", "expression": line}]
    documents = validating("problems.size() == 0", annotations={"checks": "pod-resources"}, variables=variables)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump_all(documents))
    assert run_command_line(["policies", "check", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("page", "block"),
    [pytest.param(page, block, id=f"{page} {block.reason}") for page, block in ALL if block.marker == "file"],
)
def test_a_file_of_a_page_is_used_by_a_later_command(page: str, block: Block) -> None:
    later = BLOCKS[page][BLOCKS[page].index(block) + 1 :]
    assert any(block.reason in each.text for each in later if each.is_run)


def test_every_block_with_a_program_is_run_or_has_a_reason() -> None:
    silent = [(page, block.text) for page, block in ALL if block.language == "python" and not block.marker]
    assert silent == [], "name the file before the block, and run it in a later block"
