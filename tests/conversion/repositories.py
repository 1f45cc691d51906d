"""How many policies and cases of whole repositories are converted, pass, differ and are skipped, by kind and reason.

    python -m tests.conversion.repositories --kyverno POLICIES_DIR TESTS_DIR --gatekeeper LIBRARY_DIR

The repositories are checkouts of kyverno/policies, of `test` in kyverno/kyverno, and of
open-policy-agent/gatekeeper-library. Exits with 1 if a case differs, or if fewer cases pass than at the commits
b9c4317c, 111e07b and 5c441fb.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from webhook.apimachinery.paths import get
from webhook.conversion.convert import convert_documents
from webhook.errors import InputError
from webhook.policy.load import Options
from webhook.suites import find
from webhook.suites.case import run_case
from webhook.workloads import table
from webhook.yamltext import yamlfile

HOW = Options(table=table.load_table())
LEAST = {"ValidatingPolicy": 1300, "ClusterPolicy in CEL": 1500, "MutatingPolicy": 60, "gator": 131}
"""The least number of cases that pass."""
KNOWN = {"missing-policy", "test-fail"}
"""The words in the names of folders with suites that are written to fail"""


def kinds_of_suite(suite):
    kinds = {}
    for document in yamlfile.read(suite.input):
        for name in get(document.value, ("policies",)) or ():
            try:
                objects = suite.objects([name])
            except InputError:
                continue
            for each in objects:
                in_cel = any(get(rule, ("validate", "cel")) for rule in get(each, ("spec", "rules")) or ())
                kinds[get(each, ("metadata", "name"))] = f"{each['kind']} in CEL" if in_cel else each["kind"]
    return kinds


def count_cases(folder):
    results, reasons, differ = Counter(), Counter(), []
    for suite in find.find_suites([folder]):
        if KNOWN & set(suite.file.parts):
            continue
        kinds = kinds_of_suite(suite) if suite.file.name.startswith("kyverno-test") else {}
        for entry in find.read_suite(suite, HOW):
            kind = next((kinds[part] for part in entry.id.split("/") if part in kinds), "gator")
            result = run_case(entry)
            results[kind, str(result.result)] += 1
            if str(result.result) == "skip":
                reasons[kind, result.why.splitlines()[0]] += 1
            elif str(result.result) != "pass":
                differ.append(f"{suite.file}: {entry.id}: {result.why}")
    return results, reasons, differ


def count_policies(folder):
    counts = Counter()
    for file in sorted(folder.rglob("*.yaml")):
        if any(part.startswith(".") for part in file.relative_to(folder).parts):
            continue
        try:
            documents = list(yamlfile.load(file.read_text(encoding="utf-8"), str(file)))
        except InputError:
            continue
        for document in documents:
            made = convert_documents([document], HOW)
            if made.policy_count == 1:
                counts[get(document.value, ("kind",)), "not converted" if made.problems else "converted"] += 1
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kyverno", type=Path, nargs="*", default=[])
    parser.add_argument("--gatekeeper", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    is_good = True
    for folder in (*given.kyverno, *given.gatekeeper):
        results, reasons, differ = count_cases(folder)
        print(f"# {folder}")
        for (kind, result), count in sorted(results.items()):
            print(f"{count:6} {kind}: {result}")
        for (kind, reason), count in reasons.most_common(20):
            print(f"{count:6} {kind}: skipped: {reason}")
        print(*differ, sep="\n")
        passed = {kind: count for (kind, result), count in results.items() if result == "pass"}
        is_first = folder in (given.kyverno[:1] + given.gatekeeper[:1])
        is_good &= not differ and all(passed[kind] >= LEAST[kind] for kind in LEAST if is_first and kind in passed)
    for folder in given.kyverno[:1]:
        for (kind, result), count in sorted(count_policies(folder).items()):
            print(f"{count:6} {kind}: {result}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
