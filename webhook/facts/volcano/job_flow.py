"""Rules of Volcano's webhook for a JobFlow, and flows with Jobs that are never created.

The controller creates each Job from its JobTemplate, under the name `<jobflow>-<flow>`. The controller reads neither
the patch nor the probe of a flow.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobflows/validate, pkg/controllers/jobflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano.groups import VOLCANO_JOB_FLOW
from webhook.facts.volcano.job import validate_create
from webhook.facts.volcano.job_dependencies_and_deadlocks import find_names_waiting_in_cycles
from webhook.facts.volcano.queue_tree import read_queues
from webhook.facts.volcano.sent_job import job_of_template
from webhook.facts.volcano_objects.types import Flow, JobFlow, JobTemplate
from webhook.rules.problem import Problem
from webhook.text.wording import counted, some_of
from webhook.yamltext.placeholders import is_placeholder

FLOW_EXISTS: Final = VOLCANO_JOB_FLOW.rule(
    "volcano-job-flow/flow-exists",
    title="The flow depends on a flow that does not exist",
    why="Volcano's webhook refuses the JobFlow. Without this webhook, as in Volcano's Helm chart, the flow waits.",
    function="LoadVertexs",
)
FLOW_CYCLE: Final = VOLCANO_JOB_FLOW.rule(
    "volcano-job-flow/flow-cycle",
    title="The dependencies of flows form a cycle",
    why=(
        "The flows of the cycle never start. Volcano's Helm chart does not enable the webhook that refuses such flows."
    ),
    function="IsDAG",
)
FLOW_TWICE: Final = VOLCANO_JOB_FLOW.rule(
    "volcano-job-flow/flow-twice",
    title="Two flows have the same name",
    why="Volcano names a Job after its flow, and so makes only one Job for both flows.",
    refused_by="nothing; one of the flows is left out",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/jobflow",
    level="warn",
    fails="silent",
)
TEMPLATE_EXISTS: Final = VOLCANO_JOB_FLOW.rule(
    "volcano-job-flow/template-exists",
    title="The JobTemplate does not exist",
    why="The Job of a flow is created from the JobTemplate with the name of the flow.",
    refused_by="nothing; the flow waits until the JobTemplate is created",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/jobflow",
    function="loadJobTemplateAndSetJob",
    level="warn",
    fails="pending",
)
JOB_REFUSED: Final = VOLCANO_JOB_FLOW.rule(
    "volcano-job-flow/job-refused",
    title="Volcano refuses the Job of the flow",
    why=(
        "A JobTemplate is not checked when it is created. Volcano's webhook later refuses the Job, and the flow waits "
        "for ever."
    ),
    refused_by="Volcano's webhook, when the Job is made",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/jobflow",
    level="warn",
    fails="controller",
)
LABEL_LENGTH: Final = VOLCANO_JOB_FLOW.rule(
    "volcano-job-flow/label-length",
    title="The name of the JobFlow is too long",
    why="Each Job gets a label with the namespace and the name of the JobFlow. A label has at most 63 characters.",
    refused_by="the API server, when the Job is made",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/jobflow",
    level="warn",
    fails="controller",
)
IGNORED_FIELD: Final = VOLCANO_JOB_FLOW.rule(
    "volcano-job-flow/ignored-field",
    title="Volcano ignores this field of a JobFlow",
    why=(
        "The controller makes the Job of a flow only from the JobTemplate, when the Jobs of earlier flows have "
        "completed. Patches and probes have no effect."
    ),
    refused_by="nothing; the field has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/jobflow",
    level="warn",
    fails="silent",
)

_LONGEST_LABEL: Final = 63
_MOST_SHOWN: Final = 5


def check_job_flow(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the order of the flows, and of the Job of each flow."""
    job_flow = subject.typed(JobFlow)
    yield from _validate_job_flow_dag(job_flow)
    yield from _check_name_fits_label(job_flow, subject)
    seen: set[str] = set()
    for flow in job_flow.spec.flows:
        if not is_placeholder(flow.name):
            if flow.name in seen:
                yield _flow_twice_problem(flow)
            elif flow.name:
                yield from _validate_template(flow, subject)
            seen.add(flow.name)
        yield from _check_ignored_fields(flow)


def _validate_job_flow_dag(job_flow: JobFlow) -> Iterator[Problem]:
    """Yield the problems that validateJobFlowDAG would report. Of flows with the same name, the last flow counts."""
    flows = {flow.name: flow for flow in job_flow.spec.flows}
    is_graph = True
    for flow in job_flow.charged_list([*flows.values()]):
        for index, target in enumerate(flow.depends_on.targets):
            if target not in flows:
                is_graph = False
                yield from _check_flow_exists(target, flow.depends_on.path("targets", index))
    if is_graph:
        yield from _check_flow_cycle(flows, job_flow)


def _check_flow_exists(target: str, path: FieldPath) -> Iterator[Problem]:
    if not is_placeholder(target):
        message, fix = "is not the name of a flow of this JobFlow", "write the name of another flow of this JobFlow"
        yield FLOW_EXISTS.problem(path, message, fix, target)


def _check_flow_cycle(flows: dict[str, Flow], job_flow: JobFlow) -> Iterator[Problem]:
    waiting = find_names_waiting_in_cycles({name: flow.depends_on.targets for name, flow in flows.items()}, job_flow)
    if waiting and waiting[0]:
        path = flows[waiting[0]].depends_on.path("targets")
        flows_text = f"flow `{waiting[0]}` never starts"
        if len(waiting) > 1:
            flows_text = f"flows {some_of([f'`{name}`' for name in waiting], _MOST_SHOWN)} never start"
        message = f"leads to a cycle of dependencies, so {flows_text}"
        fix = "remove a dependency so that one of these flows can start first"
        if len(waiting) == 1:
            fix = "remove this dependency"
        yield FLOW_CYCLE.problem(path, message, fix)


def _check_name_fits_label(job_flow: JobFlow, subject: Subject) -> Iterator[Problem]:
    label = f"{subject.namespace}.{job_flow.name}"
    if len(label) > _LONGEST_LABEL and not is_placeholder(job_flow.name):
        message = (
            f"is too long because its Jobs get a label with the value `{label}`, but a label has at most "
            f"{_LONGEST_LABEL} characters"
        )
        fix = f"remove {counted(len(label) - _LONGEST_LABEL, 'character')}"
        yield LABEL_LENGTH.problem("metadata.name", message, fix, job_flow.name)


def _flow_twice_problem(flow: Flow) -> Problem:
    message = "is also the name of an earlier flow, but Volcano makes only one Job of this name"
    fix = "copy the JobTemplate under a new name, and write the new name here"
    return FLOW_TWICE.problem(flow.path("name"), message, fix, flow.name)


def _validate_template(flow: Flow, subject: Subject) -> Iterator[Problem]:
    """Report a JobTemplate that does not exist, or that makes a Job which Volcano refuses."""
    view = subject.cluster_view()
    template = view.find(JobTemplate, flow.name)
    if template:
        yield from _check_job_refused(flow, template, subject)
    else:
        is_known = view.is_whole(JobTemplate.gvk) or subject.once(read_queues).is_whole
        yield _missing_template_problem(flow, view, is_known=is_known)


def _missing_template_problem(flow: Flow, view: ClusterView, *, is_known: bool) -> Problem:
    if not is_known:
        return TEMPLATE_EXISTS.problem(flow.path("name"), missing=view.missing_objects_by_field()[""])
    message = "names a JobTemplate that does not exist in the namespace, so the flow waits for the JobTemplate"
    return TEMPLATE_EXISTS.problem(flow.path("name"), message, "create the JobTemplate, or correct the name", flow.name)


def _check_job_refused(flow: Flow, template: JobTemplate, subject: Subject) -> Iterator[Problem]:
    job_flow = subject.typed(JobFlow).name
    job = job_of_template(template, f"{job_flow}-{flow.name}" if job_flow else "")
    refused = next(validate_create(job, subject), None)
    if refused is not None and not refused.missing:
        message = (
            f"makes a Job that Volcano refuses because in JobTemplate `{flow.name}`, {refused.path} "
            f"{refused.found_and_message}"
        )
        yield JOB_REFUSED.problem(flow.path("name"), message, refused.fix, flow.name)


def _check_ignored_fields(flow: Flow) -> Iterator[Problem]:
    if flow.patch:
        yield _ignored_field_problem(flow.path("patch"), "each Job is made only from its JobTemplate")
    if flow.depends_on.probe:
        what = "the flow waits until the earlier Jobs have completed"
        yield _ignored_field_problem(flow.depends_on.path("probe"), what)


def _ignored_field_problem(path: FieldPath, what: str) -> Problem:
    message = f"has no effect because Volcano does not read the field ({what})"
    return IGNORED_FIELD.problem(path, message, "remove the field")
