"""README is true: its console blocks are what the commands print, its tables name what there is.

`python -m tests.test_readme` writes the console blocks and the table of policies anew.
"""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from webhook import config, yamlfile
from webhook.cli import EXIT_CODES, VERBS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
TABLE = re.compile(r"<!-- policies: [^\n]*-->\n(.*?)<!-- end -->", re.DOTALL)
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def printed(block):
    """The block with what its commands print now, stdout and stderr as a terminal shows them."""
    text = ""
    for line in block.splitlines():
        if line.startswith("$ "):
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", "-c", line[2:]],
                cwd=ROOT,
                env={**os.environ, "PATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            text += f"{line}\n{done.stdout}"
    return text


@pytest.mark.parametrize("block", BLOCK.findall(README), ids=lambda block: block.splitlines()[0][2:42])
def test_console_blocks_are_what_the_commands_print(block):
    assert printed(block) == block


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_named(verb):
    assert f"| `claimgate {verb}` |" in README


@pytest.mark.parametrize("code", EXIT_CODES)
def test_the_exit_table_is_that_of_help(code):
    assert f"| {code} | {EXIT_CODES[code]} |" in README


def policies():
    """The table of shipped policies: a row each, in the order of their folders."""
    rows = ["| policy | what it says |", "|---|---|"]
    for folder in sorted(path for path in (ROOT / "policies").iterdir() if (path / "policy.yaml").is_file()):
        rest = sorted(path for path in folder.glob("*.yaml") if path.stem not in ("policy", "suite"))
        for document in (document for path in (folder / "policy.yaml", *rest) for document in yamlfile.read(path)):
            if not document.value["kind"].endswith("AdmissionPolicy"):
                continue
            metadata = document.value["metadata"]
            said = " ".join(metadata["annotations"]["kubernetes.io/description"].split()).replace("|", "\\|")
            rows.append(f"| `{metadata['name']}` | {said} |")
    return "".join(f"{row}\n" for row in rows)


def test_every_policy_is_in_the_table():
    assert TABLE.search(README)[1] == policies()


@pytest.mark.parametrize("policy", sorted(path.parent.name for path in (ROOT / "policies").glob("*/policy.yaml")))
def test_every_policy_has_a_suite(policy):
    assert (ROOT / "policies" / policy / "suite.yaml").is_file()


@pytest.mark.parametrize("setting", [field.name for field in dataclasses.fields(config.Settings)])
def test_every_setting_is_named(setting):
    assert f"| `{config.variable(setting)}` |" in README


def test_every_target_of_make_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    assert [target for target in targets if not re.search(rf"^{target}:.*## ", makefile, re.MULTILINE)] == []


if __name__ == "__main__":
    text = TABLE.sub(lambda match: match[0].replace(match[1], "").replace("<!-- end", f"{policies()}<!-- end"), README)
    (ROOT / "README.md").write_text(BLOCK.sub(lambda match: f"```console\n{printed(match[1])}```", text))
