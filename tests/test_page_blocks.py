"""The commands of a page work: its blocks run in order, in one shell, in a copy of the checkout."""

from __future__ import annotations

import difflib
import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

from tests.page_blocks import PAGES, ROOT, Block, blocks_of, outputs_of, shows
from webhook.cli import run_command_line
from webhook.typer_application import create_typer_application

BLOCKS = {path.relative_to(ROOT).as_posix(): [*blocks_of(path.read_text())] for path in PAGES}
ALL = [(page, block) for page, blocks in BLOCKS.items() for block in blocks]
LANGUAGES = {"console", "bash", "python", "yaml", "text", "cel"}
INDENTED = re.compile(r"(?<=\n)(?P<before>[^\n]*)\n\n    (?! |- )(?P<line>[^\n]+)")
COMMAND = re.compile(r"^\s*(?:\$ )?(claimgate|kubectl|helm) [^|>#\n]+", re.MULTILINE)


NIGHTLY = {f"docs/servers/{name}.md" for name in ("kinds", "other-servers", "ray-serve", "sglang")} | {
    "docs/shared-gpus.md"
}
"""Pages with the command of docs/servers/vllm.md and another file."""
SLOW = {"docs/tour.md"}
"""Pages with many commands."""


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


def test_no_code_block_is_indented() -> None:
    indented = [
        (path.name, match["line"])
        for path in PAGES
        for match in INDENTED.finditer(re.sub(r"```.*?\n *```", "", path.read_text(), flags=re.DOTALL))
        if not re.match(r" *(?:[-*]|\d+\.) | {4}", match["before"])
    ]
    assert indented == [], "fence the block, and say with the language what it is"


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
    """Each verb on the command line, with its flags."""
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
def test_yaml_of_a_page_is_yaml_and_its_policies_compile(page: str, block: Block, tmp_path: Path) -> None:
    documents = [*yaml.safe_load_all(block.text)]
    assert all(isinstance(document, dict | list) for document in documents)
    if any(document.get("kind", "").endswith("Policy") for document in documents if isinstance(document, dict)):
        (tmp_path / "policy.yaml").write_text(block.text)
        assert run_command_line(["policies", "check", str(tmp_path)]) == 0
