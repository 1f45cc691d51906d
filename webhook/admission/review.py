"""The core, for all commands: gives the verdict on one request, from the policies and the view of the cluster.

The core is pure: the same arguments give the same verdict. In the mutating phase, the validating policies of this phase
see the submitted object, then the mutating policies change it. A denial has no patch. In the validating phase, policies
see the object as it will be stored.

After a denial in the mutating phase, an API server skips the validating phase, and users would learn of their mistakes
one by one. So the denial also reports what the validating phase finds in the mutated object. These problems do not
change the verdict.

A built-in object from an API server has the right types. In an object from elsewhere, wrong types are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from webhook.admission.enforce import limit_actions, verdict_of_decisions, with_changes_reported, without_patch
from webhook.admission.exceptions import (
    decisions_about_chosen_rules,
    is_ignored_by_configuration,
    with_exceptions_applied,
)
from webhook.admission.respond import with_docs_links
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, PatchError
from webhook.evaluation.mutating import apply_mutating_policies, decisions_of_unfinished_mutations
from webhook.evaluation.not_evaluated import errors_of_interrupted_policies
from webhook.evaluation.patch_values import require_bounded_value
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.review_options import DEFAULT, ReviewOptions
from webhook.evaluation.typed_input import is_not_from_api_server
from webhook.evaluation.validating import validating_decisions
from webhook.manifests.configuration import EMPTY
from webhook.patch.diff import operations_between
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, DenialStatus, Verdict
from webhook.settings.values import EnforcementAction
from webhook.text.wording import some_of

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer

_NAMED: Final = 5
MAKE_SMALLER: Final = "make the object smaller, or raise timeoutSeconds of the webhook"
REPORT_IT: Final = "report this as a bug of claimgate, or of the program that sent the review"


def answer_request(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    *,
    phase: Phase,
    deadline: Deadline | None = None,
    authorizer: Authorizer | None = None,
    options: ReviewOptions = DEFAULT,
) -> Verdict:
    """Return the verdict on one request.

    Args:
        attributes: the request.
        policies: all policies.
        cluster: answers from memory.
        phase: the phase; policies of other phases are not evaluated.
        deadline: policies that are not evaluated before the deadline fail; None means no limit.
        authorizer: says what users may do; without it, expressions that use `authorizer` fail.
        options: what the caller needs in addition to the verdict.

    Returns:
        The verdict. An error of a policy, or a bug of claimgate in its evaluation, is a failure of this policy alone.
    """
    until = deadline or Deadline()
    context = request_context(policies, attributes, cluster, until, authorizer, options=options)
    verdict = _review_in_context(context, phase)
    if context.faults and is_not_from_api_server(attributes, until):
        if options.trace is not None:
            options.trace.drop_explanations()
        undecoded = replace(attributes, is_decoded=False)
        context = request_context(policies, undecoded, cluster, until, authorizer, options=options)
        verdict = _review_in_context(context, phase)
    if options.docs_address:
        verdict = with_docs_links(verdict, policies, options.docs_address)
    if options.trace is not None:
        verdict = structs.replace(verdict, explanations=tuple(options.trace.explanations))
    return structs.replace(verdict, faults=tuple(context.faults)) if context.faults else verdict


def _review_in_context(context: RequestContext, phase: Phase) -> Verdict:
    attributes, configuration = context.attributes, context.policies.configuration
    if configuration is not EMPTY and is_ignored_by_configuration(attributes, configuration, context.cluster):
        return verdict_of_decisions((), attributes)
    decisions = _decisions_with_site_settings(validating_decisions(context, phase), context)
    verdict = verdict_of_decisions(decisions, attributes, api_server_text=context.options.api_server_text)
    return verdict if phase is Phase.VALIDATE else _verdict_with_mutations(verdict, decisions, context)


def _verdict_with_mutations(verdict: Verdict, decisions: Sequence[Decision], context: RequestContext) -> Verdict:
    # `verdict` is the verdict of the validating policies of this phase
    attributes, policies, deadline = context.attributes, context.policies, context.deadline
    most, api_server_text = context.options.enforcement_action, context.options.api_server_text
    was_denied = not verdict.allowed
    changed, applied = apply_mutating_policies(context)
    mutations = _decisions_with_site_settings(applied, context)
    if mutations and not was_denied:
        decisions = (*decisions, *mutations)
        verdict = verdict_of_decisions(decisions, attributes, api_server_text=api_server_text)
    if changed is not attributes.object and most == "audit":
        return without_patch(verdict)
    if not verdict.allowed:
        further = _validating_decisions_after_change(replace(attributes, object=changed), context)
        if further is None:
            return verdict
        further = (*mutations, *further) if was_denied else further
        denial = verdict_of_decisions(decisions, attributes, further=further, api_server_text=api_server_text)
        return structs.replace(denial, further=further)
    if changed is attributes.object:
        return verdict
    try:
        patch = operations_between(attributes.object, changed, deadline)
        require_bounded_value(patch, deadline, "the patch of all policies")
    except (BudgetExceeded, PatchError) as error:
        late = (*decisions, *limit_actions(decisions_of_unfinished_mutations(policies, mutations, str(error)), most))
        return verdict_of_decisions(late, attributes, api_server_text=api_server_text)
    verdict = structs.replace(verdict, patch=patch, patched_object=changed)
    if context.options.warn_of_mutations:
        described = {each.name: each.annotations.get("kubernetes.io/description", "") for each in policies.mutating}
        verdict = with_changes_reported(verdict, mutations, described)
    return verdict


def _decisions_with_site_settings(decisions: Sequence[Decision], context: RequestContext) -> Sequence[Decision]:
    # the decisions about chosen rules, with the exceptions of the configuration and the limited actions
    most, configuration = context.options.enforcement_action, context.policies.configuration
    if configuration is not EMPTY:
        decisions = with_exceptions_applied(
            decisions, context.attributes, configuration, context.cluster, context.deadline
        )
    decisions = decisions_about_chosen_rules(decisions, context.options)
    return decisions if most == "deny" else limit_actions(decisions, most)


def _validating_decisions_after_change(changed: Attributes, context: RequestContext) -> tuple[Decision, ...] | None:
    # the decisions on the object after the mutations that succeeded; None if the time is over
    then = context.of_other_request(changed)
    decisions = validating_decisions(then, Phase.VALIDATE)
    if context.deadline.is_over:
        return None
    decisions = with_exceptions_applied(
        decisions, changed, context.policies.configuration, context.cluster, context.deadline
    )
    return tuple(decisions_about_chosen_rules(decisions, context.options))


# ---- requests that were not evaluated


class NotEvaluated(NamedTuple):
    """Why a request was not evaluated, such as `it took longer than 9 s`, and what to do."""

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
    """Answer a request that was not read or not evaluated in time, by the failurePolicies of its policies.

    Only the head of the request is known. Under attack, many of these answers are written, so a message is built only
    if it is shown.
    """
    decisions = limit_actions(errors_of_interrupted_policies(attributes, policies, cluster, phase), most)
    if not decisions:
        return Verdict(allowed=True, decisions=decisions, patched_object=attributes.object)
    denying = [each for each in decisions if each.action == "deny" and each.is_enforced]
    if not denying:
        warning = f"claimgate did not evaluate this object: {why.because}; {why.fix}"
        warnings = () if most == "audit" else (warning,)
        return Verdict(allowed=True, decisions=decisions, warnings=warnings, patched_object=attributes.object)
    names = _policy_names_as_text(denying)
    text = f"not evaluated: {why.because}, and failurePolicy Fail denies what {names} did not evaluate; {why.fix}"
    status = DenialStatus(code=denying[0].code, reason=denying[0].reason, message=text)
    return Verdict(allowed=False, decisions=decisions, status=status)


def _policy_names_as_text(decisions: Sequence[Decision]) -> str:
    names = list(dict.fromkeys(each.policy for each in decisions))
    plural = "policy" if len(names) == 1 else "policies"
    return f"{plural} {some_of(names, _NAMED)}"
