"""`claimgate explain`: every shipped rule has a page to read, and a misspelt one is named."""

from __future__ import annotations

import subprocess
import sys

import pytest

from webhook import __version__
from webhook.cli import run_command_line
from webhook.facts.registry import SHIPPED, rules_of_package
from webhook.rules.pages import shipped_rule_ids
from webhook.typer_application import run_verb


def test_a_rule_is_explained_with_both_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["explain", "gpu-portable/all"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("gpu-portable/all\n\nThe amount of `gpu` is the word all")
    assert shown.index("Bad: ") < shown.index("Good: ")
    assert "gpu-portable/equal" not in shown.split("Good: ")[1]


def test_every_rule_of_checks_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    ids = [rule.id for package in SHIPPED.packages for rule in rules_of_package(package)]
    assert run_command_line(["explain", *ids]) == 0
    shown = capsys.readouterr().out
    assert [name for name in ids if f"{name}\n\n" not in shown] == []


ALL_RULES = frozenset(shipped_rule_ids())


@pytest.mark.parametrize(
    ("asked", "first_words"),
    [
        (["several-shares"], ["gpu-requests/several-shares"]),
        (["mesh"], ["mesh/sidecar", "mesh/default-submitter"]),
        (["denied:", "spec.x:", "wrong", "(ray/num-gpus)"], ["ray/num-gpus"]),
        (["denied: a: b (ray/num-gpus); c: d (mesh/sidecar)"], ["ray/num-gpus", "mesh/sidecar"]),
    ],
    ids=["a name without its group", "a group", "words of a message", "a message with two rules"],
)
def test_explain_accepts_pasted_texts(
    asked: list[str], first_words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["explain", *asked]) == 0
    lines = capsys.readouterr().out.splitlines()
    ids = [word for line in lines if (word := line.partition(" ")[0]) in ALL_RULES]
    assert ids == first_words


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpu-portable/al", "did you mean gpu-portable/all?"),
        ("(gpu-portable/nothing-like-it)", "`gpu-portable/nothing-like-it`; `claimgate policies rules` lists all"),
        ("../../pyproject/x", "no shipped rule is called"),
    ],
)
def test_a_rule_that_does_not_exist(name: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["explain", name]) == 2
    assert expected in capsys.readouterr().err


def test_the_version_and_short_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["version"]) == 0
    assert capsys.readouterr().out.startswith(f"claimgate {__version__}\nKubernetes 1.")
    assert run_command_line(["audit", "-h"]) == 0
    assert "Report every finding" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["version"], ["explain", "gpu-portable/all"], ["explain", "gpu-portable/al"]])
def test_a_prepared_text_is_printed_without_importing_the_parser(arguments: list[str]) -> None:
    """Typer and pydantic are most of a start."""
    code = (
        "import sys; from webhook.cli import run_command_line; run_command_line(sys.argv[1:]);"
        "sys.exit(','.join({'typer', 'pydantic', 'yaml', 'webhook.facts'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["version"], ["explain", "gpu-portable/all", "mesh/sidecar"]])
def test_the_parser_prints_the_same(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(arguments) == run_verb(arguments)
    shown = capsys.readouterr().out
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :] != ""


def test_the_help_of_a_verb_is_printed_without_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["explain", "--help"]) == 0
    assert "Usage: claimgate explain" in capsys.readouterr().out
    assert run_command_line(["version", "more"]) == 2
