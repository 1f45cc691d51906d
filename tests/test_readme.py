"""README is true: its console blocks are what the commands print, its tables name what there is.

`python -m tests.test_readme` writes the console blocks anew.
"""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from webhook import config
from webhook.cli import EXIT_CODES, VERBS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
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


@pytest.mark.parametrize("policy", sorted(path.name for path in (ROOT / "policies").iterdir() if path.is_dir()))
def test_every_policy_is_named_and_has_a_suite(policy):
    assert f"| `{policy}` |" in README
    assert (ROOT / "policies" / policy / "suite.yaml").is_file()


@pytest.mark.parametrize("setting", [field.name for field in dataclasses.fields(config.Settings)])
def test_every_setting_is_named(setting):
    assert f"| `{config.variable(setting)}` |" in README


def test_every_target_of_make_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    assert [target for target in targets if not re.search(rf"^{target}:.*## ", makefile, re.MULTILINE)] == []


if __name__ == "__main__":
    (ROOT / "README.md").write_text(BLOCK.sub(lambda match: f"```console\n{printed(match[1])}```", README))
