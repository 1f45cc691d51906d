"""The names of pods in DNS, `<host>-<index>.<subdomain>`, and addresses in commands that have this form.

A pod has a DNS name only if its subdomain is the name of a Service. JobSet and LeaderWorkerSet set the subdomain, and
so does a StatefulSet with serviceName. Of the pods of Jobs, only those of an Indexed Job have fixed host names.

Source: kubernetes/kubernetes v1.36.2 pkg/controller/job/job_controller.go manageJob and
staging/src/k8s.io/endpointslice/util/controller_utils.go ShouldSetHostname; kubernetes-sigs/jobset v0.10
pkg/controllers/jobset_controller.go constructJob; kubernetes-sigs/lws@060ab4d pkg/utils/pod/pod_utils.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from webhook.facts.kinds import LEADER_WORKER_SET, STATEFUL_SET
from webhook.facts.subject import Subject
from webhook.typed.cluster_objects import StatefulSet
from webhook.typed.job_sets import JobSet
from webhook.typed.jobs import Job
from webhook.typed.pods import PodSpec
from webhook.typed.worker_sets import LeaderWorkerSet

_POD_ADDRESS: Final = re.compile(
    r"(?:tcp://)?(?P<host>[a-z0-9-]+)-(?P<index>[0-9]{1,9})\.(?P<subdomain>[a-z0-9-]+)"
    r"(?:\.(?P<namespace>[a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?)?(?::[0-9]+)?",
    re.ASCII,
)


class PodAddress(Struct, frozen=True):
    """The address of a pod, such as `train-0.train:29500`.

    Args:
        host: the host name without the index of the pod.
        index: the index of the pod.
        pod: the whole host name.
        subdomain: the name after the host name.
    """

    host: str
    index: int
    pod: str
    subdomain: str


def read_pod_address(text: str, namespace: str) -> PodAddress | None:
    """Return the address of a pod of a namespace; None for other texts.

    `train-0.x` may also be the Service train-0 of a namespace x. So the result is None if the subdomain is the name of
    the namespace.
    """
    match = _POD_ADDRESS.fullmatch(text)
    if match is None or match["subdomain"] == namespace or match["namespace"] not in (None, namespace):
        return None
    host, index = match["host"], match["index"]
    return PodAddress(host=host, index=int(index), pod=f"{host}-{index}", subdomain=match["subdomain"])


class NamesOfPods(Struct, frozen=True, kw_only=True):
    """How DNS names the pods of one template: `<host>-<index>.<subdomain>`.

    Args:
        host: the host name without the index of the pod, and in a JobSet without the index of the job.
        indexes: the number of indexes; 0 if the pods have random host names.
        replicas: the number of jobs in a JobSet, because each job has an index; None for a Job.
        subdomain: the subdomain of the pods; "" if they have no name in DNS.
        place: where the subdomain is set, as a text for a fix.
    """

    host: str
    indexes: int
    replicas: int | None = None
    subdomain: str
    place: str


def names_of_pods(subject: Subject) -> Mapping[str, NamesOfPods]:
    """Return the names of the pods of a Job or JobSet, by `host`. Pods that change their host name or their DNS are
    left out. The result is empty for other kinds and for objects without a name.

    Call this function through `Subject.once`.
    """
    name = subject.metadata.name
    names: list[NamesOfPods] = []
    if name and subject.group_kind == ("batch", "Job"):
        spec = subject.typed(Job).spec
        if not _sets_names(spec.template.spec):
            indexes = (spec.completions or 0) if spec.completion_mode == "Indexed" else 0
            subdomain = spec.template.spec.subdomain
            names.append(NamesOfPods(host=name, indexes=indexes, subdomain=subdomain, place="the pod template"))
    elif name and subject.group_kind == ("jobset.x-k8s.io", "JobSet"):
        job_set = subject.typed(JobSet).spec
        for job in job_set.replicated_jobs:
            if job_set.network.enable_dns_hostnames and job.template.spec.is_indexed and not _sets_names(job.pod):
                each = NamesOfPods(
                    host=f"{name}-{job.name}",
                    indexes=job.template.spec.completions or job.parallelism,
                    replicas=job.replicas,
                    subdomain=job_set.network.subdomain or name,
                    place="spec.network",
                )
                names.append(each)
    return {each.host: each for each in names}


def _sets_names(pod: PodSpec) -> bool:
    """Return whether a pod has its own host name, or may find hosts that the DNS of the cluster does not have."""
    if pod.dns_policy not in ("", "ClusterFirst", "ClusterFirstWithHostNet"):
        return True
    return any(pod.has(name) for name in ("hostname", "hostnameOverride", "hostAliases", "dnsConfig"))


def subdomain_of_pods(subject: Subject) -> str:
    """Return the Service that gives the pods of an object their names in DNS, such as `chat` in `chat-0.chat`; "" for
    other kinds, and if the Service is not known.
    """
    if subject.group_kind == LEADER_WORKER_SET:
        policy = subject.typed(LeaderWorkerSet).spec.network_config.subdomain_policy
        return subject.metadata.name if policy in ("", "Shared") else ""
    return subject.typed(StatefulSet).spec.service_name if subject.group_kind == STATEFUL_SET else ""
