"""Recognizes files that are not manifests: templates of Helm charts and other engines, and texts without objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from webhook.text.wording import counted
from webhook.yamltext.input_files import InputFile, is_regular_file, read_start

_CHART: Final = "Chart.yaml"
_ACTION: Final = re.compile(
    rb"\{\{|\{%|^[ \t]*%\{|^[ \t]*(?:\$\{[^}\n]*\}|\$[A-Za-z_]\w{0,99}|[A-Z][A-Z0-9]{0,99}_[A-Z0-9_]{0,99})[ \t]*\r?$"
    rb"|^[ \t]*</?#[a-z-]|[:-][ \t]%{1,2}[A-Za-z][\w.-]{0,98}\w%|[:-][ \t]@{1,2}[A-Za-z][\w.-]{0,98}\w@"
    rb"|[:-][ \t]\[[A-Za-z][\w -]{0,98}\][/:.-]|[:-][ \t]\{[A-Za-z][\w -]{0,98}\}[/:.-]|^[ \t]*<%|[:-][ \t]<%[=-]",
    re.MULTILINE,
)
"""Matches what a template engine replaces:

- the start of an action: `{{`, `{%`, `<%`, or Terraform's `%{` and FreeMarker's `<#if` at the start of a line
- a line with only a variable or a constant, such as `$NAME` or `NODE_SELECTOR`, which stands for other lines
- a value that begins with `%NAME%`, `%%NAME%%`, `@NAME@`, `[NAME]/` or `{NAME}/`, which is not valid YAML
"""
_YTT: Final = re.compile(
    r"^[ \t]*#@(?:[ \t]+(?:def|end|for|if|load)\b|(?:data|library|overlay|schema)/)|:[ \t]#@[ \t]", re.MULTILINE
)
"""Matches what ytt replaces: a line with a statement or an annotation of ytt, and a value after `#@`. YAML reads these
texts as comments. Then both branches of an `#@ if` seem to be fields.
"""
_TOKEN: Final = re.compile(
    r"^[ \t]*(?:(?:-[ \t]+){0,3}[\w./-]{1,99}:[ \t]+#\{{1,2}[A-Za-z_][\w.-]{0,99}\}{1,2}#?"
    r"|(?:-[ \t]+){1,3}#\{{1,2}[A-Za-z_][\w.-]{0,99}\}{1,2}#?|#\{{1,2}[A-Za-z_][\w.-]{0,99}\}{1,2}#)"
    r"[ \t]*(?:#[^\n]*)?\r?$",
    re.MULTILINE,
)
"""Matches a key or an item of a list with only a token, and a line with only a token between two `#`. Examples are
`port: #{PORT}#` for Azure Pipelines, `port: #{Port}` for Octopus Deploy and `#{VOLUMES}#`. A line with only `#{note}`
may be a comment.
"""


class ChartTemplate(Struct, frozen=True):
    """A template. `chart` is the folder of its chart; "" for no chart."""

    file: str
    chart: str = ""


def find_chart_of_template(file: Path) -> str:
    """Return the outermost chart that has a file as its template; "" for other files."""
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
    """Return whether a file has text for a template engine to replace."""
    try:
        return is_regular_file(file) and _ACTION.search(read_start(file)) is not None
    except OSError:
        return False


def has_values_in_comments(text: str) -> bool:
    """Return whether a text has values that YAML reads as comments, because a program such as ytt replaces the text
    before Kubernetes reads it.
    """
    return ("#@" in text and _YTT.search(text) is not None) or ("#{" in text and _TOKEN.search(text) is not None)


def has_variables_in_flow(file: InputFile, lines: Collection[int]) -> bool:
    """Return whether each of these lines, from 1, has a variable such as `${TEAM}` without quotes inside braces or
    brackets. YAML cannot read such a line before envsubst or Flux replaces the variable.
    """
    try:
        text = read_start(file).split(b"\n") if lines and is_regular_file(file) else []
    except OSError:
        return False
    return bool(text) and all(0 < line <= len(text) and _has_variable_in_flow(text[line - 1]) for line in lines)


def _has_variable_in_flow(line: bytes) -> bool:
    before, variable, _ = line.partition(b"${")
    is_quoted = before.count(b'"') % 2 or before.count(b"'") % 2
    return bool(variable) and not is_quoted and (b"{" in before or b"[" in before) and b" #" not in before


def summarize_templates(templates: Sequence[ChartTemplate]) -> str:
    """Return one line about all templates, with advice about the first chart; "" without templates."""
    if not templates:
        return ""
    chart = next((each.chart for each in templates if each.chart), "")
    some = counted(len(templates), "file is a template", "files are templates")
    first = f", first {templates[0].file}"
    command = f"`helm template {chart or 'CHART'} | claimgate audit -`"
    return f"{some} and not audited{first}: render the templates and audit the result, for example with {command}"


_KEYS: Final = re.compile(
    rb"""^(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf)?[ \t]*(?:- +)*(?:\{ *)?["']?(?:apiVersion|kind)["']?[ \t]*:""",
    re.MULTILINE,
)
"""Matches a key at the beginning of a line or after a byte order mark, with any indentation."""
_JSON: Final = re.compile(rb'"(?:apiVersion|kind)"\s*:')
"""Matches a key of JSON anywhere in a line."""
_FLOW: Final = re.compile(rb"[{,][ \t]*(?:apiVersion|kind)[ \t]*:")
"""Matches a key of YAML within braces."""
_MIME: Final = re.compile(rb"(?i)(?:MIME-Version:|Content-Type:[ \t]*multipart/)")
"""Matches the first line of a MIME message, such as the user data of a node, which may contain a NodeConfig."""


def looks_like_manifest(data: bytes) -> bool:
    """Return whether a file has a key `apiVersion` or `kind`, and is not a MIME message.

    The encoding may be UTF-16, or an encoding that extends ASCII.
    """
    text = data.replace(b"\0", b"").replace(b"\r", b"\n")
    return not _MIME.match(text) and any(pattern.search(text) for pattern in (_KEYS, _JSON, _FLOW))
