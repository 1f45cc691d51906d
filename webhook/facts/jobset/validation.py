"""What JobSet and the API server will say of a JobSet spec, long after what holds it was accepted.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go ValidateCreate, and config/components/crd. Here
its replicated jobs; policies.py has its policies, pods/template_validation.py its pods, name_length.py long names.
What an existing PersistentVolumeClaim says is not looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.finding import Finding
from webhook.facts.jobset import policies
from webhook.facts.pods import template_validation
from webhook.facts.pods.containers import items, mapping, text, whole
from webhook.names import DNS_LABEL, dns1035_label
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder

POD: Final = ("template", "spec", "template")
_MOST_PODS = 2**31 - 1
_LETTERS = "use lower-case letters, digits and dashes"


def findings(spec: JSON, deadline: Deadline | None = None) -> Iterator[Finding]:
    """Everything that will be said of a JobSet spec but for the length of its name."""
    until = deadline or Deadline()
    jobs = [mapping(each) for each in until.paced(items(get(spec, ("replicatedJobs",))))]
    places = {text(job.get("name")): len(jobs) - 1 - back for back, job in enumerate(reversed(jobs))}
    yield from _network(get(spec, ("network", "subdomain")))
    yield from policies.findings(mapping(spec), jobs, places.keys(), until)
    shared = policies.claim_templates(spec)
    for index, job in enumerate(until.paced(jobs)):
        at = ("replicatedJobs", index)
        yield from _job(job, index, places, at, until)
        yield from template_validation.findings(
            mapping(get(job, POD)), shared, text(job.get("name")), (*at, *POD), until
        )


def _network(subdomain: JSON) -> Iterator[Finding]:
    name = text(subdomain)
    if name and dns1035_label(name) and not is_placeholder(name):
        words = f"`{name}` is no DNS label of RFC 1035, which a service is named by: {_LETTERS}, a letter first"
        yield Finding("badName", ("network", "subdomain"), words, by="jobset")


def _job(job: JSON, index: int, places: Mapping[str, int], at: FieldPath, deadline: Deadline) -> Iterator[Finding]:
    name, group = text(job.get("name")), text(job.get("groupName"))
    if name and not DNS_LABEL.fullmatch(name) and not is_placeholder(name):
        words = f"`{name}` is no DNS label, which the names of jobs and pods are made of: {_LETTERS}"
        yield Finding("badName", (*at, "name"), words, name, by="jobset")
    if group and dns1035_label(group) and not is_placeholder(group):
        words = f"`{group}` is no DNS label of RFC 1035: {_LETTERS}, a letter first"
        yield Finding("badName", (*at, "groupName"), words, name, by="jobset")
    replicas, pods = whole(job.get("replicas")), whole(get(job, ("template", "spec", "parallelism")))
    if replicas is not None and pods is not None and replicas * pods > _MOST_PODS:
        words = f"`{replicas}` times a parallelism of {pods} is more than {_MOST_PODS}: ask for fewer pods"
        yield Finding("tooManyPods", (*at, "replicas"), words, name, by="jobset")
    for place, other in enumerate(deadline.paced(items(job.get("dependsOn")))):
        wanted, where = text(get(other, ("name",))), (*at, "dependsOn", place, "name")
        yield from _dependency(wanted, name, index, places, where)


def _dependency(wanted: str, name: str, index: int, places: Mapping[str, int], at: FieldPath) -> Iterator[Finding]:
    """Only jobs that stand before may be waited for; upstream lets a job wait for itself, which it then does."""
    if is_placeholder(wanted) or places.get(wanted, index) < index:
        return
    if index == 0:
        words = f"the first replicated job can depend on none, `{wanted}` included: remove it or move the job"
        yield Finding("firstDepends", at, words, name, by="jobset")
    elif wanted in places:
        words = f"replicated job `{wanted}` does not stand before `{name}`, which depends on it: move it to the front"
        yield Finding("lateDependency", at, words, name, by="jobset")
    else:
        words = f"there is no replicated job `{wanted}` for `{name}` to depend on: correct the name"
        yield Finding("unknownDependency", at, words, name, by="jobset")
