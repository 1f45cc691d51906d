"""deploy/generate.py writes files that depend on policies and deploy/base. They are not edited by hand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests import quick_yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
GENERATED: dict[str, str] = runpy.run_path(str(DEPLOY / "generate.py"))["generated"]()


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_a_generated_file_is_what_would_be_written(name: str) -> None:
    assert (DEPLOY / name).read_text() == GENERATED[name], "run make deploy"


def test_the_chart_has_no_other_files() -> None:
    files = {f"chart/files/{path.name}" for path in (DEPLOY / "chart" / "files").iterdir()}
    assert files == {name for name in GENERATED if name.startswith("chart/files/")}


@pytest.mark.parametrize("page", ["README.md", "chart/templates/NOTES.txt"])
def test_the_command_that_deletes_the_kinds_names_each_kind(page: str) -> None:
    """Helm keeps the CustomResourceDefinitions at an uninstall. The command in the chart's notes must delete each of
    them.
    """
    definitions = quick_yaml.load_all((DEPLOY / "overlays" / "live-policies" / "definitions.yaml").read_text())
    names = {each["metadata"]["name"] for each in definitions}
    (command,) = re.findall(r"kubectl delete crd ([a-z. ]+)", (DEPLOY / page).read_text())
    assert set(command.split()) == names, f"name every definition in deploy/{page}"
