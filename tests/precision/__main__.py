"""Shows how often each rule reports manifests of some folders, to judge the rule: `python -m tests.precision`.

Folders are audited separately, with advice. The output also has earlier judgements (judged.yaml). The repository does not
have these manifests.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.precision.judged import judged
from webhook.facts.subject import SHIPPED

_EXCLUDED: Final = ("podsets.json", "expected_static.json", "*.tsv")
"""Files beside manifests that are not manifests"""
_LONGEST: Final = 160
_EXAMPLES: Final = 5


def findings(folder: Path) -> Iterator[dict[str, Any]]:
    """Return the findings, with advice, as the objects of NDJSON.

    Raises:
        SystemExit: the audit itself failed.
    """
    excluded = [f"--exclude={name}" for name in _EXCLUDED]
    command = [sys.executable, "-m", "webhook", "audit", str(folder), "--advice", "-o", "ndjson", *excluded]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in range(4):
        raise SystemExit(ran.stderr)
    for line in ran.stdout.splitlines():
        finding = json.loads(line)
        if finding["result"] in ("fail", "warn"):
            yield finding


def spoken(folders: Iterable[Path]) -> dict[tuple[str, str], list[str]]:
    by_rule: dict[tuple[str, str], list[str]] = {}
    for folder in folders:
        for finding in findings(folder):
            text = f"{Path(finding['file']).relative_to(folder.parent)}:{finding['line']}: {finding['message']}"
            told = "advice" if "Advice" in finding["actions"] else finding["result"]
            by_rule.setdefault((finding["rule"], told), []).append(text)
    return by_rule


def table(by_rule: dict[tuple[str, str], list[str]], *, is_verbose: bool) -> Iterator[str]:
    """Yield a table with the most frequent rule first. With `is_verbose`, it has the texts of findings."""
    known, levels = judged(), SHIPPED.rule_catalogue_of_groups(SHIPPED.check_groups)
    yield f"{'times':>5}  {'told as':7} {'level':7} {'useful/noise/false':>18}  rule"
    for (rule, result), told in sorted(by_rule.items(), key=lambda each: (-len(each[1]), each[0])):
        counts = "/".join(map(str, known[rule].counts)) if rule in known else ""
        level = levels[rule].level if rule in levels else ""
        yield f"{len(told):5}  {result:7} {level:7} {counts:>18}  {rule}"
        for text in told[:_EXAMPLES] if is_verbose else ():
            yield f"       {text[:_LONGEST]}"


def folders_in(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders inside the given folders. A folder without folders inside is yielded itself."""
    for path in paths:
        inside = sorted(each for each in path.iterdir() if each.is_dir())
        yield from inside or [path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="folders whose folders are audited one by one")
    parser.add_argument("-v", "--verbose", action="store_true", help="also what each rule said, some of it")
    given = parser.parse_args()
    for line in table(spoken(folders_in(given.paths)), is_verbose=given.verbose):
        print(line)


if __name__ == "__main__":
    main()
