"""Device claims that Kueue cannot count, which it tells as a condition of the Workload and never at admission.

Source: kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go; the reasons are Misconfigured and Inadmissible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from webhook.facts.dra.absent_claims import promised_templates
from webhook.facts.dra.pod_claims import TEMPLATE
from webhook.facts.kueue.absence import is_absent
from webhook.facts.kueue.blocked import NEVER, NOT_NOW, Place
from webhook.facts.kueue.configuration import configuration
from webhook.facts.kueue.managed import Managed
from webhook.facts.kueue.objects import CONFIGURATION
from webhook.facts.kueue.workload import workload
from webhook.facts.subject import Subject
from webhook.problem import MissingObject, Problem

_BY_CONFIGURATION: Final = "unmapped-class"


def claims(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """Claims of the pods that Kueue cannot count, and templates that are not there and that nobody will make."""
    made = subject.once(workload)
    for pod_set, refused in subject.deadline.paced(made.refused()):
        problem = NEVER(refused.rule, pod_set.at(refused.path), refused.message, refused.fix)
        if refused.rule == _BY_CONFIGURATION and not subject.once(configuration).is_known:
            missing = MissingObject(kind="ConfigMap", name=CONFIGURATION.name, namespace=CONFIGURATION.namespace)
            problem = replace(problem, missing=(missing,))
        yield problem
    for pod_set in made.pod_sets:
        for each in subject.deadline.paced(pod_set.devices.waiting):
            yield NOT_NOW(each.rule, pod_set.at(each.path), each.message, each.fix)
        for path, missing in subject.deadline.paced(pod_set.devices.missing):
            if missing.name in subject.once(_promised):
                continue  # the controller of its ComputeDomain makes it, and Kueue tries again
            if is_absent(subject.view(), TEMPLATE):
                message = (
                    f"uses ResourceClaimTemplate `{missing.name}`, which does not exist, so Kueue cannot "
                    f"count its devices"
                )
                yield NOT_NOW(
                    "claim-template-missing",
                    pod_set.at(path),
                    message,
                    "create the template in this namespace, or correct the name",
                )
            else:
                place.view.note(missing)


def _promised(subject: Subject) -> frozenset[str]:
    return promised_templates(subject.view())
