"""Which rules of the shipped policies are stricter than in the last release, and whether that is allowed.

A rule that did not deny first warns for one release, and CHANGELOG names both steps. `python -m tests.stricter_rules`
prints what is stricter. With `--record`, the last step of a release (CONTRIBUTING.md), it records what each rule does,
and the names of verbs, flags and formats.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from tests import quick_yaml, released_names
from tests.literals import shipped_policies
from webhook.deadline import Deadline
from webhook.policy.compiled import Binding, Policy
from webhook.rules.actions import EFFECTS, Chosen, action_for_problem, actions_of_param, actions_within_binding
from webhook.rules.decisions import ValidationAction
from webhook.rules.rule import Rule

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "data" / "released_actions.txt"
NOTHING_RELEASED: Final = "# no release yet\n"

Actions: TypeAlias = Mapping[tuple[str, str], str]
"""The strictest level of a rule of a policy: `Deny`, `Warn` or `Audit`. Lower levels are absent."""
_STRICTNESS: Final = MappingProxyType({"": 0, "Audit": 1, "Warn": 2, "Deny": 3})


def shipped_actions() -> Actions:
    """Return what each rule does by default, with the shipped bindings and params."""
    params = _shipped_params()
    return {
        (policy.name, rule.id): done
        for policy in shipped_policies().policies
        for rule in (*policy.catalogue.values(), *policy.named)
        if (done := _strictest(policy, rule, params))
    }


def _shipped_params() -> Mapping[str, Chosen]:
    files = (ROOT / "policies").glob("*/params*.yaml")
    objects = [one for file in files for one in quick_yaml.load_all(file.read_text()) if one]
    return {one["metadata"]["name"]: actions_of_param(one, Deadline()) for one in objects}


def _strictest(policy: Policy, rule: Rule, params: Mapping[str, Chosen]) -> str:
    """Return the strictest action of a binding, or ""."""
    done = [str(action) for binding in policy.bindings for action in _actions(policy, rule, binding, params)]
    return max((each for each in done if each in _STRICTNESS), key=_STRICTNESS.__getitem__, default="")


def _actions(
    policy: Policy, rule: Rule, binding: Binding, params: Mapping[str, Chosen]
) -> tuple[ValidationAction, ...]:
    if rule.id not in policy.catalogue:
        return binding.actions
    name = (binding.param_source and binding.param_source.name) or ""
    decided = action_for_problem(rule.id, rule.level, params.get(name, {}))
    return () if decided == EFFECTS["off"].action else actions_within_binding(decided, binding.actions)


def stricter(released: Actions, now: Actions) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield each policy and rule that is stricter now, with its old action ("" for none) and its new action."""
    for place, action in sorted(now.items()):
        before = released.get(place, "")
        if _STRICTNESS[action] > _STRICTNESS[before]:
            yield place, before, action


def mistakes(released: Actions, now: Actions, unreleased: str) -> Iterator[str]:
    """Yield what is not allowed about stricter rules. `unreleased` is the changelog since the last release."""
    for (policy, rule), before, action in stricter(released, now):
        if action == "Deny" and before != "Warn":
            told = f"it denies and {f'was `{before}`' if before else 'did nothing'} in the last release"
            yield f'{policy}: {rule}: {told}: let it warn for one release (level="warn", or validationActions: [Warn])'
        if f"`{rule}`" not in unreleased:
            yield f"{policy}: {rule}: it is stricter than in the last release ({action}): name `{rule}` in CHANGELOG.md"


def read(text: str) -> Actions | None:
    """Return the content of the record; None before the first release."""
    if text == NOTHING_RELEASED:
        return None
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {(policy, rule): action for policy, rule, action in rows}


def written(version: str, actions: Actions) -> str:
    rows = (f"{policy} {rule} {action}\n" for (policy, rule), action in sorted(actions.items()))
    return f"# {version}\n{''.join(rows)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", metavar="VERSION", help="write down what this version does: it was released")
    chosen = parser.parse_args()
    now = shipped_actions()
    if chosen.record:
        released_names.record(chosen.record)
        RECORD.write_text(written(chosen.record, now))
        return 0
    for (policy, rule), before, action in stricter(read(RECORD.read_text()) or {}, now):
        sys.stdout.write(f"{policy:28} {rule:50} {before or 'nothing':8} {action}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
