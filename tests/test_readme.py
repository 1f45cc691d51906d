"""README and the pages of docs are true: tables and pictures match the program.

tests/test_page_blocks.py runs the commands. `python -m tests.test_readme` rewrites console blocks, tables and pictures.
"""

import contextlib
import dataclasses
import re
import tempfile
from pathlib import Path

import pytest
import typer
from prometheus_client.parser import text_string_to_metric_families

from tests.commands.test_serve import served
from tests.page_blocks import PAGES as WITH_BLOCKS
from tests.page_blocks import written_anew
from tests.rows import all_rows
from tests.terminal_picture import picture
from webhook.cli import run_command_line
from webhook.report.formats import FORMATS
from webhook.server.counters import METRIC, Counters
from webhook.settings.serving import ServerSettings
from webhook.settings.setting import declared_settings
from webhook.typer_application import EXIT_CODES, VERBS, create_typer_application
from webhook.yamltext import yamlfile

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = {path: path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
COMMANDS = PAGES[ROOT / "docs" / "commands.md"]
TERMINAL = ROOT / "docs" / "pictures" / "terminal.svg"
QUEUES = ROOT / "docs" / "pictures" / "queues.svg"
MOST_LINES, MOST_WORDS, MOST_COLUMNS = 142, 700, 120
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
TABLE = re.compile(r"(<!-- (\w+): [^\n]*-->\n)((?:\|[^\n]*\n)*)(?=<!-- end -->)")
SETTINGS = declared_settings(ServerSettings)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_named(verb):
    assert f"| `claimgate {verb}` |" in README
    assert f"| `claimgate {verb}` |" in COMMANDS


def test_readme_is_short():
    lines = README.splitlines()
    assert len(lines) <= MOST_LINES
    assert len(README.partition("| verb | does |")[0].split()) <= MOST_WORDS
    assert [line for line in lines if len(line) > MOST_COLUMNS and not line.startswith("$ ")] == []


def test_every_link_leads_to_a_file():
    pages = {**PAGES, **{path: path.read_text() for path in (ROOT / "CONTRIBUTING.md", ROOT / "deploy" / "README.md")}}
    lost = [
        (path.name, to) for path, text in pages.items() for to in LINK.findall(text) if not (path.parent / to).exists()
    ]
    assert lost == []


def test_the_policy_of_readme_is_the_one_that_its_suite_tests():
    [written] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    folder = ROOT / "examples" / "first-policy"
    assert written == "---\n".join((folder / name).read_text() for name in ("policy.yaml", "binding.yaml"))
    assert run_command_line(["test", str(folder)]) == 0
    assert run_command_line(["policies", "check", str(folder)]) == 0


def ran(shown):
    with tempfile.TemporaryDirectory() as folder:
        return written_anew(f"```console\n{shown}```", Path(folder) / "checkout")[len("```console\n") : -len("```")]


def terminal():
    """Return the picture at the top of README: a job that is refused, in a file and by the webhook."""
    job = "examples/research-team/broken/volcano-job-gang.yaml --context examples/research-team/cluster"
    shown = "".join(f"$ claimgate {verb} {job}\n" for verb in ("audit", "replay"))
    return picture(ran(shown), "A terminal: claimgate audit and replay show why a job is refused, and the fix")


def test_the_picture_of_a_terminal_is_what_the_commands_print():
    assert TERMINAL.read_text() == terminal()


def test_the_picture_of_queues_is_what_the_command_draws(capsys):
    assert run_command_line(["queues", str(ROOT / "examples" / "research-team" / "cluster"), "-o", "svg"]) == 0
    assert QUEUES.read_text() == capsys.readouterr().out


@pytest.mark.parametrize("code", EXIT_CODES)
def test_the_exit_table_is_that_of_help(code):
    assert f"| {code} | {EXIT_CODES[code]} |" in COMMANDS


def policies():
    """Return a table with a row for each policy, in the order of the folders."""
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
    group = typer.main.get_command(create_typer_application())
    for verb in VERBS:
        command = group.get_command(None, verb)
        inner = getattr(command, "commands", None)
        yield from ((f"{verb} {name}", one) for name, one in inner.items()) if inner else [(verb, command)]


def has(command, setting):
    """Return whether a command has the flag of a setting. Another flag with the same name does not count."""
    return any(
        setting.flag in each.opts and setting.environment_variable in (each.help or "") for each in command.params
    )


def settings():
    """Return a table with a row for each setting, and the verbs that have its flag."""
    rows = ["| flag | variable | default | verbs | meaning |", "|---|---|---|---|---|"]
    for each in SETTINGS:
        verbs = dict.fromkeys(name.split()[0] for name, command in commands() if has(command, each))
        default = f"`{each.shown_default}`" if each.default not in (None, ()) else each.shown_default
        rows.append(f"| `{each.flag}` | `{each.environment_variable}` | {default} | {', '.join(verbs)} | {each.help} |")
    return "".join(f"{row}\n" for row in rows)


def output_formats():
    """Return a table with a row for each format, in the order of the declaration."""
    rows = ["| format | for | content |", "|---|---|---|"]
    rows += [f"| `{each.name}` | {each.audience} | {each.content} |" for each in FORMATS]
    return "".join(f"{row}\n" for row in rows)


def metrics():
    """Return a table with a row for each metric of a running server, without the metrics of Python and of the process."""
    declared = [each.metadata[METRIC] for each in dataclasses.fields(Counters)]
    labels = {"claimgate_build_info": ("version",)} | {f"claimgate_{each.name}": each.labels for each in declared}
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server, server.client() as client:
        server.wait("ready")
        families = list(text_string_to_metric_families(client.get("/metrics").text))
    rows = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for each in sorted(families, key=lambda family: family.name):
        if each.name.startswith("claimgate_"):
            name = each.name + ("_total" if each.type == "counter" else "")
            of_name = labels.get(each.name.removesuffix("_duration_seconds"), ())
            shown = ", ".join(f"`{label}`" for label in of_name)
            meaning = each.documentation.replace("|", "\\|")
            rows.append(f"| `{name}` | {each.type} | {shown} | {meaning} |")
    return "".join(f"{row}\n" for row in rows)


TABLES = {"policies": policies, "settings": settings, "formats": output_formats, "metrics": metrics}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_what_its_source_says(name):
    [table] = [match[3] for text in PAGES.values() for match in TABLE.finditer(text) if match[2] == name]
    assert table == TABLES[name](), "run make docs, which writes the table"


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_the_help_of_each_setting_is_that_of_the_table(name, capsys):
    command = dict(commands())[name]
    assert run_command_line([*name.split(), "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for each in SETTINGS:
        assert (f"{each.help} [{each.environment_variable}" in shown) is has(command, each)


@all_rows("policy", sorted(path.parent.name for path in (ROOT / "policies").glob("*/policy.yaml")))
def test_every_policy_has_a_suite(policy):
    assert (ROOT / "policies" / policy / "suite.yaml").is_file()


def test_make_runs_every_nightly_test():
    lines = [line for line in (ROOT / "Makefile").read_text().splitlines() if " -m nightly" in line]
    run = [word for line in lines for word in line.split() if word.startswith("tests/")] + [
        "tests/e2e"
    ]  # by its own mark
    here = Path(__file__).relative_to(ROOT)
    for file in sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")):
        if file != here and "mark.nightly" in (ROOT / file).read_text():
            assert any(file.is_relative_to(each) for each in run), (
                f"{file}: name it in a line of Makefile with -m nightly"
            )


def test_every_target_of_make_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    assert [target for target in targets if not re.search(rf"^{target}:.*## ", makefile, re.MULTILINE)] == []


def written(text):
    text = TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}" if match[2] in TABLES else match[0], text)
    with tempfile.TemporaryDirectory() as folder:
        return written_anew(text, Path(folder) / "checkout")


if __name__ == "__main__":
    for page in WITH_BLOCKS:
        page.write_text(written(page.read_text()))
    TERMINAL.write_text(terminal())
    with QUEUES.open("w") as picture, contextlib.redirect_stdout(picture):
        run_command_line(["queues", str(ROOT / "examples" / "research-team" / "cluster"), "-o", "svg"])
