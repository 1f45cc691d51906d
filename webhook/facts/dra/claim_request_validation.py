"""What Kubernetes refuses of the requests of a claim: resource-claims.

Source: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.dra.claim_values import value_problem
from webhook.facts.dra.requests import FLAT_VERSIONS, Request, Selector
from webhook.facts.dra.selector_words import feature_gate_words, refusal_words
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.schema.values import Breach

problem: Final = Group("resource-claims").problem


def validate_requests(asked: Iterable[Request], version: str) -> Iterator[Problem]:
    """As validateDeviceRequest, with its alternatives."""
    for request in asked:
        if request.kind in ("none", "both"):
            yield _request_kind(request, is_flat=version in FLAT_VERSIONS)
        for choice in request.with_choices:
            if choice.kind in ("exactly", "choice"):
                yield from _class_required(choice)
                yield from _allocation_mode(choice)
                yield from _count(choice)
            for selector in choice.selectors:
                yield from _selector(selector)


def _request_kind(request: Request, *, is_flat: bool) -> Problem:
    exactly = "`deviceClassName`" if is_flat else "`exactly`"
    if request.kind == "both":
        message, fix = f"must not have both {exactly} and `firstAvailable`", "keep one of them"
    else:
        message, fix = f"must have one of {exactly} and `firstAvailable`", "set one of them"
        if request.device_class:
            where = "beside its name" if is_flat else "under exactly"
            fix = f"in this version, write deviceClassName and all the rest {where}"
    return problem("request-kind", request.at, f"request `{request.name}` {message}", fix)


def _class_required(request: Request) -> Iterator[Problem]:
    if not request.device_class:
        message = "must be set because every request names the DeviceClass of its devices"
        yield problem("class-required", (*request.at, "deviceClassName"), message, "name a DeviceClass")


def _allocation_mode(request: Request) -> Iterator[Problem]:
    mode = request.allocation_mode
    if mode not in ("ExactCount", "All") and not is_placeholder(mode):
        yield value_problem(Breach(what="allocationMode", at=(*request.at, "allocationMode"), given=mode))


def _count(request: Request) -> Iterator[Problem]:
    """As validateDeviceAllocationMode."""
    if request.allocation_mode == "All" and request.count != 0:
        message = "must not be set with allocation mode All because that mode asks for every device"
        fix = "remove the count, or set allocation mode ExactCount"
        yield problem("count", (*request.at, "count"), message, fix, request.count)
    elif request.allocation_mode == "ExactCount" and request.count <= 0:
        message = "must be at least 1 with allocation mode ExactCount"
        yield problem("count", (*request.at, "count"), message, "set 1 or more", request.count)


def _selector(selector: Selector) -> Iterator[Problem]:
    """As validateCELSelector: rules selector and selector-feature-gate."""
    if selector.judged.problem:
        yield problem("selector", selector.at, *refusal_words(selector))
    elif selector.judged.gated:
        yield problem("selector-feature-gate", selector.at, *feature_gate_words(selector))
