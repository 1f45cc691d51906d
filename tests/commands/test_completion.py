"""Completion in a shell. Bash runs the printed script, and other shells are simulated by the variables that they
set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.literals import shipped_policies
from tests.rows import some_quickly
from webhook.policy.configured_rules import rule_ids
from webhook.report.formats import format_names
from webhook.rules.catalogue import RULES_OF_FILES

BIN = Path(sys.executable).parent
ASK = """
eval "$(claimgate --show-completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_claimgate_completion claimgate
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(command: list[str], **variables: str) -> list[str]:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def offered_by_bash(*words: str) -> list[str]:
    return run(["bash", "-c", ASK, "bash", "claimgate", *words])


@pytest.mark.parametrize(
    ("words", "expected"),
    some_quickly(
        [
            (["audit", "-o", "sa"], ["sarif", "sarif="]),
            (["audit", "--output", "nd"], ["ndjson", "ndjson="]),
            (["replay", "-o", "sarif="], ["sarif="]),
            (["backtest", "-o", "j"], ["json", "json="]),
            (["queues", "-o", "s"], ["svg", "svg="]),
            (["policies", "list", "-o", "t"], ["text", "text="]),
            (["audit", "--rule", "gpu-portable/al"], ["gpu-portable/all"]),
            (["audit", "--skip", "claims-exactly-one/so"], ["claims-exactly-one/source-required"]),
            (
                ["audit", "--rule", "gpu-portable/all", "--rule", "num-proc"],
                ["num-proc-per-node", "num-proc-per-node/not-set"],
            ),
            (["policies", "rules", "--rule", "device-claims/claim-ex"], ["device-claims/claim-exists"]),
            (["explain", "training-job/slots-f"], ["training-job/slots-for-ranks"]),
            (["explain", "gpu-portable/all", "num-proc"], ["num-proc-per-node/not-set"]),
            (["explain", "no-such"], []),
        ],
        4,
    ),
)
def test_bash_completes_these_words(words: list[str], expected: list[str]) -> None:
    assert offered_by_bash(*words) == expected


def test_every_format_is_offered() -> None:
    assert offered_by_bash("audit", "-o", "") == [text for name in format_names() for text in (name, f"{name}=")]


def test_every_rule_is_offered() -> None:
    """The shell offers all shipped rules: those of checks, of policies with named validations, and of files."""
    rules = {name for name in rule_ids(shipped_policies()) if "/" in name} | RULES_OF_FILES.keys()
    assert set(offered_by_bash("explain", "")) == rules
    assert set(offered_by_bash("audit", "--rule", "")) == rules | {name.partition("/")[0] for name in rules}


def test_zsh_offers_the_same() -> None:
    asked = {"_CLAIMGATE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "claimgate explain gpu-portable/al"}
    assert "gpu-portable/all" in " ".join(run(["claimgate"], **asked))
