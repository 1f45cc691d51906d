"""docs/user-text.md: every regular expression, from the source: `python -m tests.user_text_page` rewrites it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.backtracking import Use
from tests.regular_expressions import find_expressions

PAGE = Path(__file__).parents[1] / "docs" / "user-text.md"
_BEGINS = "<!-- expressions: tests/user_text_page.py -->"
_ENDS = "<!-- end -->"

USES: Mapping[str, tuple[Use, str]] = {
    "webhook.cel.library.moments._TERM": (
        Use.IN_A_ROW,
        "`_sum_duration_terms` ends at the first text that is not a term",
    ),
    "webhook.apimachinery.paths._STEP": (
        Use.IN_A_ROW,
        "`_longest_path_and_end` ends at the first text that is not a step",
    ),
    "webhook.yamltext.source_line._WORD": (Use.BEGINNING, "`source_line` tries it at one place of a line"),
    "webhook.apimachinery.names.DNS_LABEL": (Use.WHOLE, "it matches whole texts; other patterns contain it"),
    "webhook.apimachinery.names.DNS_SUBDOMAIN": (Use.WHOLE, "never matched: only messages quote its text"),
    "webhook.apimachinery.names.DNS_1035_LABEL": (Use.WHOLE, "it matches whole texts; messages quote its text"),
    "webhook.apimachinery.names._KEY": (Use.WHOLE, "it matches whole texts; messages quote its text"),
    "webhook.apimachinery.names._LABEL_VALUE": (Use.WHOLE, "it matches whole texts; messages quote its text"),
    "webhook.workloads.table._NAMES": (Use.WHOLE, "`_mistakes_of_row` matches whole names"),
}
"""How an expression is used, if its module does not show this"""

BOUNDED: Mapping[str, str] = {
    "webhook.cel.syntax.lexer._TOKEN": "each token begins at the end of the previous token; a text without its closing quote is "
    "read to the end of its line, or once for each kind of triple quote; an expression has at most 100,000 characters",
    "webhook.cel.library.url: re.compile(f'[{characters}]|%(?i:{bytes_})')": "made of constants when the module "
    "is imported; it matches at most three characters",
    'webhook.commands.audit_index: re.compile(f"""kind["\']?\\\\s*:\\\\s*["\']?(?:{kind})""")': "made of the kinds of "
    "the workload table; white space is read only after `kind`",
    "webhook.commands.test: re.compile(text)": "the user of `claimgate test --run` writes it",
    "webhook.cluster.decoding._TOKEN": "JSON of the API server, of at most 16 MiB; a string without its end is the last token",
    "webhook.facts.command_lines.shell._ALONE": "if a word does not match, `_PLAIN` then reads the whole word",
    "webhook.facts.command_lines.launchers: re.compile('|'.join(map(re.escape, (*_EXPANDED, *programs, *modules))))": "the "
    "names of the shipped `launchers.yaml`, without a loop",
    "webhook.facts.device_failures.probes: re.compile('|'.join(document.value[each]))": "the shipped "
    "`model_servers.yaml`, with patterns that are checked in the same way",
    "webhook.facts.model_servers.started_servers: re.compile(row['switches'])": "the shipped `servers.yaml`, with "
    "patterns that match the name of a flag from its beginning, and have one loop at the end",
    "webhook.facts.model_servers.started_servers: re.compile(row['bare'])": "the shipped `servers.yaml`, with patterns "
    "that match the name of a flag from its beginning",
    "webhook.facts.model_servers.started_servers: re.compile('|'.join(row['images']))": "the shipped `servers.yaml`, "
    "with patterns without a loop",
    "webhook.facts.gpu.devices: re.compile('|'.join(map(translate, patterns)))": "the shipped shell patterns of "
    "`devices.yaml`, on at most 1,024 characters of an image",
    "webhook.facts.gpu.devices: re.fullmatch(self.form, name)": "the shipped `devices.yaml`, with patterns that are "
    "checked in the same way",
    "webhook.apimachinery.names: re.search(f'[^A-Za-z0-9{re.escape(allowed)}]', name)": "it matches one character",
    "webhook.yamltext.placeholders._BLANKS[1][1]": "it matches if another `__` follows, so only the text after the last `__` is read without a match",
    "webhook.rules.text: re.split(f'; (?={re.escape(str(root))}\\\\b)', message)": "a constant text before the root "
    "of a path of the catalogue",
    "webhook.conversion.cluster_policy: re.sub(f'(object|oldObject)\\\\.{part}', f'\\\\1.{template_path}.{part}', text)": "a "
    "file that the user of `claimgate policies convert` names; made of constants, without a loop",
    "webhook.conversion.pod_controllers: re.sub(f'(object|oldObject)\\\\.{part}{_NOT_NAMESPACE}', "
    "f'\\\\1.{template_path}.{part}', text)": "a file that the user of `claimgate policies convert` names; made of constants, "
    "without a loop",
    "webhook.conversion.pod_controllers: re.sub(f'\\\\b(object|oldObject|Object)\\\\.{part}', "
    "f'\\\\1.{template_path}.{plain}', text)": "a file that the user of `claimgate policies convert` names; made of constants, "
    "without a loop",
    "webhook.rules.pages._HEADING": "pages of the package",
    "webhook.yamltext.block_style._FLOW_TOKEN": "collections that `_LINE` has matched, so every string is closed",
    "webhook.yamltext.block_style._ITEMS": "a list that `_LINE` has matched, so every string is closed",
}
"""Expressions that are not linear by themselves, or are built at run time, with their limits"""


def page() -> str:
    """Return the page with new tables between its marks. The text outside of the marks stays."""
    before, _, rest = PAGE.read_text().partition(_BEGINS)
    return "\n".join([f"{before}{_BEGINS}", *_tables(), _ENDS]) + rest.partition(_ENDS)[2]


def _tables() -> list[str]:
    found = find_expressions()
    lines = ["| expression | what bounds it |", "|---|---|"]
    lines += [f"| {_cell(home)} | {who} |" for home, who in sorted(BOUNDED.items())]
    lines += ["", "| expression | how it is used |", "|---|---|"]
    lines += [f"| {_cell(home)} | {why} |" for home, (_, why) in sorted(USES.items())]
    lines += ["", "| module | expressions that take linear time for any text |", "|---|---|"]
    by_module: dict[str, list[str]] = defaultdict(list)
    for home in found:
        if home not in BOUNDED:
            module, name = home.split(": ", 1) if ": " in home else home.partition("[")[0].rsplit(".", 1)
            by_module[module].append(f"`{name.replace('|', chr(92) + '|')}`")
    return lines + [
        f"| `{module}` | {', '.join(dict.fromkeys(names))} |" for module, names in sorted(by_module.items())
    ]


def _cell(home: str) -> str:
    return f"`{home.removeprefix('webhook.').replace('|', chr(92) + '|')}`"


if __name__ == "__main__":
    PAGE.write_text(page())
