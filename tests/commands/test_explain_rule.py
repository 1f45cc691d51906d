"""`claimgate explain`: every shipped rule has a page, and a misspelt id gets a suggestion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from webhook import __version__
from webhook.cli import run_command_line
from webhook.facts.subject import SHIPPED, rules_of_package
from webhook.rules.pages import shipped_rule_ids
from webhook.typer_application import run_verb


def test_a_rule_is_explained_with_both_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["explain", "gpu-portable/all"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("gpu-portable/all\n\nThe amount of `gpu` is the word all")
    assert shown.index("Bad: ") < shown.index("Good: ")
    assert "gpu-portable/equal" not in shown.split("Good: ")[1]


@pytest.mark.parametrize(
    ("rule", "moment"),
    [
        ("gpu-portable/all", "built-in kinds are refused at once; other kinds are accepted, but their pods"),
        (
            "pod-template/host-users",
            "built-in kinds are refused at once; other kinds are accepted, but their pods",
        ),
        ("training-job/container-name-required", "accepted, but the controller fails, or its pods are refused"),
    ],
)
def test_the_moment_of_a_failure_depends_on_the_kind(
    rule: str, moment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["explain", rule]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"- Without claimgate: {moment}" in shown, "an API server validates the pod templates of built-in kinds"


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
        (
            "(gpu-portable/nothing-like-it)",
            "`gpu-portable/nothing-like-it`; `claimgate policies rules` lists all rules",
        ),
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
    """Importing Typer and pydantic would take most of the time of the command."""
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


OWN = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own-rules}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - {expression: "object.metadata.name != 'wrong'", message: "metadata.name: is wrong"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: own-rules}
spec: {policyName: own-rules, validationActions: [Warn]}
"""
RULES = """\
group: own
policies:
  own-rules:
  - {rule: name, title: The name is wrong, why: The site uses the name itself., source: the handbook}
"""


def test_own_policies_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["policies", "init", "team-label"]) == 0
    capsys.readouterr()
    pasted = "spec.template.metadata.labels: must have the label team (policy team-label)"
    for asked in (["team-label"], [pasted]):
        assert run_command_line(["explain", "--policies", "policies", *asked]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("team-label\n\nEvery pod has the label team, which names who pays.\n")
        assert "- Demands: `'team' in object.metadata.?labels.orValue({})`: metadata.labels: must have" in shown
        assert shown.index("Bad: a Pod without the label is denied") < shown.index(
            "Good: a Pod with the label is allowed"
        )
        assert shown.count("```\nmetadata.labels: must have the label team, which names who pays: add it\n```") == 1


def test_own_rules_are_explained_beside_shipped_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(OWN)
    (tmp_path / "rules.yaml").write_text(RULES)
    assert run_command_line(["explain", "--policies", str(tmp_path), "own/name", "gpu-portable/all"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("own/name\n\nThe name is wrong\n\nThe site uses the name itself.\n")
    assert "- Source: the handbook\n" in shown
    assert "Policy `own-rules` (Warn)" in shown
    assert "\ngpu-portable/all\n\nThe amount of `gpu` is the word all" in shown
    assert run_command_line(["explain", "--policies", str(tmp_path), "own/nam"]) == 2
    assert "no rule or policy is called `own/nam`; did you mean own/name?" in capsys.readouterr().err


def test_a_policy_that_does_not_compile_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(OWN.replace("!= 'wrong'", "!="))
    assert run_command_line(["explain", "--policies", str(tmp_path), "own-rules"]) == 2
    assert "spec.validations[0].expression" in capsys.readouterr().err
