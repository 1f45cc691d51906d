"""Removes rules from decisions: `--rule` and `--skip`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.admission.exceptions import decision_about_problems
from webhook.evaluation.review_options import ReviewOptions
from webhook.rules.decisions import Decision


def decisions_about_chosen_rules(decisions: Sequence[Decision], options: ReviewOptions) -> Sequence[Decision]:
    """Return the decisions without the rules that the options leave out; what admits stays."""
    if not options.rules and not options.skip:
        return decisions
    return tuple(kept for each in decisions for kept in _about_chosen_rules(each, options))


def _about_chosen_rules(decision: Decision, options: ReviewOptions) -> Iterator[Decision]:
    if decision.evaluation == "admit":
        yield decision
    elif not decision.problems:
        if _is_chosen(decision.rule or decision.policy, decision.policy, options):
            yield decision
    else:
        kept = [each for each in decision.problems if _is_chosen(each.code, decision.policy, options)]
        if len(kept) == len(decision.problems):
            yield decision
        elif kept:
            yield decision_about_problems(decision, kept)


def _is_chosen(rule: str, policy: str, options: ReviewOptions) -> bool:
    names = {rule, rule.partition("/")[0], policy}
    return (not options.rules or not names.isdisjoint(options.rules)) and names.isdisjoint(options.skip)
