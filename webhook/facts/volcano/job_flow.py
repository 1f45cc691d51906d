"""What Volcano's webhook refuses of a JobFlow, and flows whose Jobs are never made.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobflows/validate, pkg/controllers/jobflow. The
controller makes each Job of its JobTemplate alone, under the name `<jobflow>-<flow>`; it reads neither the patch nor
the probe of a flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.volcano.job import Job, made_job, spec_of
from webhook.facts.volcano.queues import read_queues
from webhook.facts.volcano.validation import validate_create
from webhook.facts.volcano_objects import kinds
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.schema import decode_object
from webhook.wording import counted

problem: Final = Group("volcano-job-flow").problem
_LONGEST_LABEL: Final = 63
_IGNORED: Final[tuple[tuple[FieldPath, str], ...]] = (
    (("patch",), "each Job is made only from its JobTemplate"),
    (("dependsOn", "probe"), "the flow waits until the others have completed"),
)


def job_flow(subject: Subject) -> Iterator[Problem]:
    """The order of the flows, and the Job of each."""
    flows: Sequence[JSON] = spec_of(subject.object).get("flows") or ()
    yield from _validate_order(flows, subject.deadline)
    yield from _advise_label(subject)
    seen: set[str] = set()
    for index, flow in enumerate(subject.deadline.paced(flows)):
        at, name = ("spec", "flows", index), flow.get("name", "")
        if name in seen and not is_placeholder(name):
            message = "is also the name of a flow before this one, but Volcano makes only one Job of that name"
            fix = "copy the JobTemplate under another name, and write that name here"
            yield problem("flow-twice", (*at, "name"), message, fix, name)
        elif name and not is_placeholder(name):
            yield from _advise_template(name, (*at, "name"), subject)
        seen.add(name)
        for field_path, what in _IGNORED:
            if get(flow, field_path):
                message = f"has no effect because Volcano does not read the field ({what})"
                yield problem("ignored-field", (*at, *field_path), message, "remove the field")


def _validate_order(flows: Sequence[JSON], deadline: Deadline) -> Iterator[Problem]:
    """As validateJobFlowDAG; of two flows with one name the last counts."""
    targets: dict[str, Sequence[str]] = {}
    places: dict[str, int] = {}
    for index, flow in enumerate(deadline.paced(flows)):
        targets[flow.get("name", "")] = get(flow, ("dependsOn", "targets"), [])
        places[flow.get("name", "")] = index
    known = True
    for name, wanted in deadline.each(targets.items()):
        for index, target in enumerate(deadline.each(wanted)):
            if target not in targets:
                known = False
                if not is_placeholder(target):
                    at = ("spec", "flows", places[name], "dependsOn", "targets", index)
                    yield problem(
                        "flow-exists",
                        at,
                        "is not the name of a flow of this JobFlow",
                        "write the name of another flow of this JobFlow",
                        target,
                    )
    cycle = _cyclic(targets, deadline) if known else ""
    if cycle:
        path = ("spec", "flows", places[cycle], "dependsOn", "targets")
        yield problem(
            "flow-cycle",
            path,
            f"makes flow `{cycle}` wait for itself",
            "remove a dependency so that one flow can start first",
        )


def _cyclic(targets: Mapping[str, Sequence[str]], deadline: Deadline) -> str:
    """The first flow that waits for itself, by way of others or not; "" for none."""
    waiting = {name: len(set(wanted)) for name, wanted in targets.items()}
    followers: dict[str, list[str]] = {}
    for name, wanted in deadline.each(targets.items()):
        for target in deadline.each(set(wanted)):
            followers.setdefault(target, []).append(name)
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        done = ready.pop()
        del waiting[done]
        for name in deadline.each(followers.get(done, [])):
            waiting[name] -= 1
            if not waiting[name]:
                ready.append(name)
    return next(iter(waiting), "")


def _advise_label(subject: Subject) -> Iterator[Problem]:
    name = get(subject.object, ("metadata", "name"), "")
    label = f"{subject.namespace}.{name}"
    if len(label) > _LONGEST_LABEL and not is_placeholder(name):
        message = (
            f"is too long because its Jobs get a label with the value `{label}`, of at most {_LONGEST_LABEL} characters"
        )
        fix = f"remove {counted(len(label) - _LONGEST_LABEL, 'character')}"
        yield problem("label-length", "metadata.name", message, fix, name)


def _advise_template(name: str, path: FieldPath, subject: Subject) -> Iterator[Problem]:
    """The JobTemplate exists, and Volcano takes the Job made of it."""
    view = subject.view()
    template = view.get(kinds.JOB_TEMPLATES, name)
    if template is None:
        if not (view.is_whole() or subject.once(read_queues).is_whole):
            yield problem("template-exists", path, missing=view.missing()[""])
            return
        message = (
            "names a JobTemplate that does not exist in the namespace, so the flow waits until somebody creates it"
        )
        yield problem("template-exists", path, message, "create the JobTemplate, or correct the name", name)
        return
    job = _made(name, template, subject)
    refused = next(validate_create(job, subject), None)
    if refused is not None and not refused.missing:
        message = f"makes a Job that Volcano refuses because in JobTemplate `{name}`, {refused.path} {refused.said}"
        yield problem("job-refused", path, message, refused.fix, name)


def _made(name: str, template: JSON, subject: Subject) -> Job:
    flow = get(subject.object, ("metadata", "name"), "")
    made = "" if is_placeholder(flow) or not flow else f"{flow}-{name}"
    decoded = decode_object(template, kinds.JOB_TEMPLATES, subject.deadline).value
    return made_job(spec_of(decoded), made, ("spec",), subject)
