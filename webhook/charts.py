"""Recognizes files that are not manifests yet: templates of Helm charts, and others with `{{` or `{%` that are not
YAML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from webhook.input_files import InputFile, is_regular_file, read_start
from webhook.wording import counted

_CHART: Final = "Chart.yaml"
_ACTION: Final = re.compile(rb"\{\{|\{%")


@dataclass(frozen=True, slots=True)
class ChartTemplate:
    """A template; `chart` is the folder of its chart, "" if it belongs to none."""

    file: str
    chart: str = ""


def find_chart_of_template(file: Path) -> str:
    """Return the outermost chart whose template a file is; "" for other files."""
    for folder in file.parents:
        if folder.name == "templates" and _is_chart_folder(folder.parent):
            return str(_outermost_chart(folder.parent))
    return ""


def _is_chart_folder(folder: Path) -> bool:
    return (folder / _CHART).is_file()


def _outermost_chart(chart: Path) -> Path:
    outer = chart.parent.parent
    return _outermost_chart(outer) if chart.parent.name == "charts" and _is_chart_folder(outer) else chart


def has_template_actions(file: InputFile) -> bool:
    """Return whether a file has text that a template engine replaces."""
    try:
        return is_regular_file(file) and _ACTION.search(read_start(file)) is not None
    except OSError:
        return False


def summarize_templates(templates: Sequence[ChartTemplate]) -> str:
    """Return one line about all templates, with what to do about the first chart; "" without templates."""
    if not templates:
        return ""
    chart = next((each.chart for each in templates if each.chart), "")
    some = counted(len(templates), "file is a template", "files are templates")
    first = f", first {templates[0].file}"
    how = f"`helm template {chart or 'CHART'} | claimgate audit -`"
    return f"{some} and not audited{first}: audit what they make, for example with {how}"
