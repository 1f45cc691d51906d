"""The values of facts about a target, and the text where one cannot be computed."""

from __future__ import annotations

from webhook.errors import EvaluationError, PatchError
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.facts.fact import Result
from webhook.policy.static_params import Param


def fact(name: str, target: Target, param: Param, context: RequestContext) -> Result:
    """A fact of an object, with what it could not be computed from.

    Raises:
        LookupFailed: the param cannot be read.
        EvaluationError: the object holds patches that cannot be merged.

    """
    try:
        return context.subject(target, param).result(name)
    except PatchError as error:
        raise EvaluationError(f"fact `{name}`: the patches of the object cannot be merged: {error}") from error
