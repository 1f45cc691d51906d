"""The verdict on a request that could not be read or evaluated in time, by the failurePolicies.

Evaluates nothing. Knows the request without its object. Under attack the event loop writes many of these answers at the
same time, so a sentence is built only if it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from webhook.admission.enforce import limit_actions
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cluster import Cluster
from webhook.evaluation.not_evaluated import errors_of_interrupted_policies
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, DenialStatus, Verdict
from webhook.settings.values import EnforcementAction
from webhook.text.wording import some_of

_NAMED = 5
MAKE_SMALLER: Final = "make the object smaller, or raise timeoutSeconds of the webhook"
REPORT_IT: Final = "report this as a bug of claimgate, or of what sent the review"


class NotEvaluated(NamedTuple):
    """Why a request was not evaluated, such as `it took longer than 9 s`, and what to do about it."""

    because: str
    fix: str = MAKE_SMALLER


def answer_unevaluated_request(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    *,
    phase: Phase,
    why: NotEvaluated,
    most: EnforcementAction = "deny",
) -> Verdict:
    """Answer one request that was not evaluated."""
    decisions = limit_actions(errors_of_interrupted_policies(attributes, policies, cluster, phase), most)
    if not decisions:
        return Verdict(allowed=True, decisions=decisions, patched_object=attributes.object)
    denying = [each for each in decisions if each.action == "deny" and each.is_enforced]
    if not denying:
        said = f"claimgate did not evaluate this object, {why.because}; {why.fix}"
        told = () if most == "audit" else (said,)
        return Verdict(allowed=True, decisions=decisions, warnings=told, patched_object=attributes.object)
    names = _policy_names_as_text(denying)
    text = f"not evaluated, {why.because}, and failurePolicy Fail denies what {names} did not evaluate; {why.fix}"
    status = DenialStatus(code=denying[0].code, reason=denying[0].reason, message=text)
    return Verdict(allowed=False, decisions=decisions, status=status)


def _policy_names_as_text(decisions: Sequence[Decision]) -> str:
    names = list(dict.fromkeys(each.policy for each in decisions))
    plural = "policy" if len(names) == 1 else "policies"
    return f"{plural} {some_of(names, _NAMED)}"
