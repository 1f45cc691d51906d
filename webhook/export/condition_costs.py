"""Estimates the cost of a webhook's matchConditions. API servers stop an expression at a cost limit.

If a condition is stopped, API servers skip a webhook with `failurePolicy: Ignore`. A user can then create an object
that no policy checks. With `Fail`, API servers refuse the object without a helpful reason.

Limits for one condition and for all conditions of a webhook: k8s.io/apiserver v0.36 pkg/apis/cel/config.go. Sizes: a
request has at most 3 MiB (pkg/server/config.go MaxRequestBodyBytes). Its headers, which have the user, have at most 1
MiB (net/http DefaultMaxHeaderBytes).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cel import compiled_engine
from webhook.cel.cost import MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT
from webhook.cel.estimate.sizes import Range, uniform_size_bound
from webhook.cel.library.declaration import Version
from webhook.cel.types import BOOL, Type
from webhook.errors import CompileError
from webhook.manifests.webhook_configurations import Webhook, WebhookConfiguration
from webhook.policy.declarations import create_expression_environment
from webhook.policy.worst_case import REQUEST_SIZE

_HEADERS: Final = 1 << 20
_LEAST_OF_GROUP: Final = len("Impersonate-Group: a\r\n")
_OF_OBJECTS: Final = uniform_size_bound(REQUEST_SIZE)
_OF_REQUEST: Final = uniform_size_bound(_HEADERS)
_LISTS_OF_REQUEST: Final = Range(0, _HEADERS // _LEAST_OF_GROUP)


def costly_conditions(configuration: WebhookConfiguration, version: Version) -> Iterator[str]:
    """Yield a sentence about each webhook with matchConditions that may exceed the cost limit of API servers.

    The estimate is the maximum for any request. A webhook without a sentence is always within the limits. The
    configuration may belong to another project.
    """
    for webhook in configuration.webhooks:
        for danger, fix in _reasons(webhook, version):
            yield f"{configuration.kind} {configuration.metadata.name}: {webhook.name}: {danger}; {fix}"


def most_cost_of_condition(expression: str, version: Version) -> int:
    """Return the greatest cost of a matchCondition for any request.

    Raises:
        CompileError: the expression does not compile.
    """
    environment = create_expression_environment(version, params=False, authorizer=True, mutation=False)
    program = compiled_engine().compile(expression.strip(), environment, expects=(BOOL,))
    return program.estimated_cost(_size_of_input, worst=True)[1]


def _size_of_input(path: tuple[str, ...], static: Type) -> Range | None:
    if path[:1] != ("request",):
        return _OF_OBJECTS(path, static)
    return _LISTS_OF_REQUEST if static.name in ("list", "map") else _OF_REQUEST(path, static)


def _reasons(webhook: Webhook, version: Version) -> Iterator[tuple[str, str]]:
    """Yield pairs: a text about a cost that is too high, and a fix."""
    effect = (
        "then the API server does not call the webhook"
        if webhook.failure_policy == "Ignore"
        else "then the API server refuses the object"
    )
    total = 0
    for condition in webhook.match_conditions:
        named = f"its matchCondition `{condition.name}`"
        try:
            cost = most_cost_of_condition(condition.expression, version)
        except CompileError as error:
            first = str(error).partition("\n")[0]
            yield f"the cost of {named} is not known, because it does not compile: {first}", "correct the expression"
            continue
        total += cost
        if cost > PER_CALL_LIMIT:
            excess = f"{named} may cost more on a large object than the {PER_CALL_LIMIT:,} at which an API server stops"
            fix = "compare sizes before a text is read or a list is walked, as in `x.size() > 64 || x.exists(…)`"
            yield f"{excess}, and {effect}", fix
            return
    if total > MATCH_CONDITIONS_BUDGET:
        excess = f"cost more on a large object than the {MATCH_CONDITIONS_BUDGET:,} at which an API server stops"
        yield f"its matchConditions may together {excess}, and {effect}", "write fewer or cheaper conditions"
