"""The fact `dra`: the devices that claims ask for."""

from __future__ import annotations

from typing import Final

from webhook.attributes import JSON
from webhook.facts.dra.class_lookup import DeviceClasses
from webhook.facts.dra.fact_values import claim_as_json, reference_as_json, requests_as_json
from webhook.facts.dra.pod_claims import LOOKUPS, pod_claims
from webhook.facts.dra.requests import requests_of_reviewed_claim
from webhook.facts.dra.structures import DRA, DRA_STRUCTURES
from webhook.facts.fact import Fact, FactResult
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.lookups import RUNTIMES


def _compute_dra_fact(subject: Subject) -> FactResult:
    claims = subject.once(pod_claims)
    value = {
        "claims": [claim_as_json(claim) for claim in claims.claims],
        "references": [reference_as_json(reference) for reference in claims.references],
        "requests": _reviewed_requests_as_json(subject),
    }
    return subject.once(pod_sets).build_fact_result(value, "requests", missing=claims.missing)


def _reviewed_requests_as_json(subject: Subject) -> list[JSON]:
    """Return the requests of a claim or a template itself, whether their classes exist or not."""
    asked = subject.once(requests_of_reviewed_claim)
    return requests_as_json(asked, DeviceClasses(subject.cluster_view()).states(asked)) if asked else []


FACTS: Final = (
    Fact(
        name="dra",
        about=(
            "Device claims of pods, looked up in the namespace of the object, in one form over v1alpha3, v1beta1, "
            "v1beta2 and v1, and of a ResourceClaim or ResourceClaimTemplate its own requests. An object counts as "
            "absent only from the view of a whole cluster; otherwise it is missing."
        ),
        examples=(
            "dra.claims.all(c, !c.absent)",
            "dra.claims.filter(c, c.gpu && c.users.size() == 0).size() == 0",
            "dra.references.all(r, !r.resolved || r.requestFound)",
            'dra.requests.all(r, r.selectors.all(s, s.problem == ""))',
        ),
        type=DRA.type,
        structures=DRA_STRUCTURES,
        compute=_compute_dra_fact,
        lookups=(*LOOKUPS, *RUNTIMES),
    ),
)
