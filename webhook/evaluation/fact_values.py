"""What facts and checks say of a target, and the texts of what cannot be computed."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.errors import EvaluationError, PatchError
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.facts.check import NOTHING, Checked
from webhook.facts.fact import Result
from webhook.policy.static_params import Param


def fact(name: str, target: Target, param: Param, context: RequestContext) -> Result:
    """A fact of an object, with what it could not be computed from.

    Raises:
        LookupFailed: the param cannot be read.
        EvaluationError: the object holds patches that cannot be merged.

    """
    try:
        return context.subject(target, param.assumptions()).result(name)
    except PatchError as error:
        raise EvaluationError(f"fact `{name}`: the patches of the object cannot be merged: {error}") from error


def checked(groups: Sequence[str], target: Target, param: Param, context: RequestContext) -> Sequence[Checked]:
    """What the checks of some groups say of an object: nothing of a group whose checks have nothing to say.

    Raises:
        LookupFailed: the param cannot be read.
        EvaluationError: the object holds patches that cannot be merged.

    """
    subject, found = context.subject(target, param.assumptions()), []
    for group in groups:
        try:
            result = subject.checked(group)
        except PatchError as error:
            raise EvaluationError(f"checks `{group}`: the patches of the object cannot be merged: {error}") from error
        if result is not NOTHING:
            found.append(result)
    return found
