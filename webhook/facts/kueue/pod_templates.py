"""The pod templates of an object with typed fields; their pod sets know their paths in the object."""

from __future__ import annotations

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.typed.collections import Items
from webhook.typed.pods import PodTemplate
from webhook.typed.view import ReadingContext


def typed_template(template: JSON, deadline: Deadline) -> PodTemplate:
    """Return a pod template with typed fields."""
    return PodTemplate.of(template, (), ReadingContext(deadline))


def pod_templates(subject: Subject) -> Items[PodTemplate]:
    """Return the templates of the pod sets of an object, in order; call it through `Subject.once`."""
    reading = ReadingContext(subject.deadline)
    listed = subject.once(pod_sets).all
    return Items([PodTemplate.of(pod_set.template, (), reading) for pod_set in listed], subject.deadline)
