"""Adds to what users read the address of the page of each rule, where the site has published the documentation.

A sentence about a rule ends with its id in brackets: `(train-job/gang-size)` becomes `(train-job/gang-size, https://…)`.
Shipped checks have pages; policies of a site have none.
"""

from __future__ import annotations

from dataclasses import replace

from webhook.admission.enforce import MAX_WARNINGS
from webhook.decisions import DenialStatus, Verdict
from webhook.policy.policy_set import PolicySet
from webhook.problems.rule import page_address


def with_rule_links(verdict: Verdict, policies: PolicySet, docs_address: str) -> Verdict:
    """Return the verdict with the addresses of the pages of its rules.

    Warnings stay as they are where they would be more than an API server passes on unchanged.
    """
    if verdict.status is None and not verdict.warnings:
        return verdict
    status = verdict.status and _linked_status(verdict.status, policies, docs_address)
    warnings = tuple(_text_with_links(each, policies, docs_address) for each in verdict.warnings)
    is_short = sum(map(len, warnings)) <= MAX_WARNINGS
    return replace(verdict, status=status, warnings=warnings if is_short else verdict.warnings)


def _linked_status(status: DenialStatus, policies: PolicySet, docs_address: str) -> DenialStatus:
    if status.details is None:
        return status
    causes = tuple(
        replace(each, message=_text_with_links(each.message, policies, docs_address)) for each in status.details.causes
    )
    message = _text_with_links(status.message, policies, docs_address)
    return replace(status, message=message, details=replace(status.details, causes=causes))


def _text_with_links(text: str, policies: PolicySet, docs_address: str) -> str:
    return "\n".join(_linked_line(line, policies, docs_address) for line in text.split("\n"))


def _linked_line(line: str, policies: PolicySet, docs_address: str) -> str:
    rule = line.rpartition("(")[2].removeprefix("claimgate: ").removesuffix(")")
    if not line.endswith(f"{rule})") or not any(rule in policy.catalogue for policy in policies.policies):
        return line
    return f"{line[:-1]}, {page_address(docs_address, rule)})"
