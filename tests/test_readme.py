"""README is true: its console blocks are what the commands print, its tables name what there is.

`python -m tests.test_readme` writes the console blocks and the tables anew.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tests.rows import all_rows
from webhook import yamlfile
from webhook.cli import EXIT_CODES, VERBS, application, run
from webhook.settings.serving import ServerSettings
from webhook.settings.setting import declared

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
TABLE = re.compile(r"(<!-- (\w+): [^\n]*-->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
SETTINGS = declared(ServerSettings)
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
            if not document.value.get("kind", "").endswith("AdmissionPolicy"):
                continue
            metadata = document.value["metadata"]
            said = " ".join(metadata["annotations"]["kubernetes.io/description"].split()).replace("|", "\\|")
            rows.append(f"| `{metadata['name']}` | {said} |")
    return "".join(f"{row}\n" for row in rows)


def commands():
    """Every command that the command line has, by what is written to call it."""
    group = typer.main.get_command(application())
    for verb in VERBS:
        command = group.get_command(None, verb)
        inner = getattr(command, "commands", None)
        yield from ((f"{verb} {name}", one) for name, one in inner.items()) if inner else [(verb, command)]


def has(command, setting):
    """Whether the command has the flag of this setting, not another one of the same name."""
    return any(setting.flag in each.opts and setting.variable in (each.help or "") for each in command.params)


def settings():
    """The table of settings: a row each, with the verbs that have its flag."""
    rows = ["| flag | variable | default | verbs | meaning |", "|---|---|---|---|---|"]
    for each in SETTINGS:
        verbs = dict.fromkeys(name.split()[0] for name, command in commands() if has(command, each))
        default = f"`{each.shown_default}`" if each.default not in (None, ()) else each.shown_default
        rows.append(f"| `{each.flag}` | `{each.variable}` | {default} | {', '.join(verbs)} | {each.help} |")
    return "".join(f"{row}\n" for row in rows)


TABLES = {"policies": policies, "settings": settings}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_what_its_source_says(name):
    [table] = [match[3] for match in TABLE.finditer(README) if match[2] == name]
    assert table == TABLES[name]()


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_help_says_of_each_setting_what_the_table_says(name, capsys):
    command = dict(commands())[name]
    assert run([*name.split(), "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for each in SETTINGS:
        assert (f"{each.help} [{each.variable}" in shown) is has(command, each)


@all_rows("policy", sorted(path.parent.name for path in (ROOT / "policies").glob("*/policy.yaml")))
def test_every_policy_has_a_suite(policy):
    assert (ROOT / "policies" / policy / "suite.yaml").is_file()


def test_every_target_of_make_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    assert [target for target in targets if not re.search(rf"^{target}:.*## ", makefile, re.MULTILINE)] == []


if __name__ == "__main__":
    text = TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}", README)
    (ROOT / "README.md").write_text(BLOCK.sub(lambda match: f"```console\n{printed(match[1])}```", text))
