"""Puts a change of one target back into the whole object, and reads the target from the changed object."""

from __future__ import annotations

from dataclasses import replace

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.evaluation.conversions import convert_to_version
from webhook.evaluation.request_objects import metadata_of, pod_of_template
from webhook.evaluation.target import EvaluationTarget
from webhook.evaluation.typed_input import decode_unless_decoded


def refresh_target(target: EvaluationTarget, obj: JSON, deadline: Deadline | None = None) -> EvaluationTarget | None:
    """Return the target as it is in the object now; None if its template is gone."""
    podset = target.podset
    if podset is None:
        seen = convert_to_version(obj, target.match, deadline or Deadline())
        return target if seen is target.written else _target_with_object(target, seen, deadline)
    template_now = paths.get(obj, podset.path)
    template = {"spec": template_now} if podset.bare else template_now
    if not isinstance(template_now, dict):
        return None
    if template_now is (podset.template.get("spec") if podset.bare else podset.template):
        return target
    now = replace(podset, template=template)
    return _target_with_object(replace(target, podset=now), pod_of_template(template, target.attributes), deadline)


def _target_with_object(target: EvaluationTarget, written: JSON, deadline: Deadline | None) -> EvaluationTarget:
    decoded = decode_unless_decoded(written, target.kind, target.attributes, deadline or Deadline())
    return replace(target, object=decoded.value, written=written, mismatches=(), omitted=())


class TemplateRewriting:
    """Changes templates of an object one after the other, and copies each part at most once.

    What stands on the way to a template is copied once and then changed in place: thousands of templates of one list
    would otherwise be as many copies of that list. Whoever shows the object, or an object inside it, to somebody who
    may remember it by its identity must call `seal` first.
    """

    def __init__(self) -> None:
        self._copies: dict[int, JSON] = {}  # kept alive so that their ids stay theirs

    def freeze_copies(self) -> None:
        """Leave all copies made so far unchanged from now on."""
        if self._copies:
            self._copies = {}

    def put(self, obj: JSON, path: paths.FieldPath, new: JSON) -> JSON:
        """Return the object with another value at a path."""
        if not path:
            return new
        root = inner = self._copy_once(obj)
        for step in path[:-1]:
            copy = self._copy_once(inner[step])
            inner[step] = copy
            inner = copy
        inner[path[-1]] = new
        return root

    def _copy_once(self, value: JSON) -> JSON:
        if id(value) not in self._copies:
            value = value.copy()
            self._copies[id(value)] = value
        return value


def with_changed_pod(
    obj: JSON, target: EvaluationTarget, pod: JSON, rewriting: TemplateRewriting | None = None
) -> JSON:
    """Return the whole object with a changed virtual Pod back in its template; untouched parts stay the same values."""
    into = rewriting or TemplateRewriting()
    podset, before = target.podset, target.written
    if pod is before:
        return obj
    if podset is None:
        return pod if target.match.conversion == "none" else {**pod, "apiVersion": obj["apiVersion"]}
    if podset.bare:
        return into.put(obj, podset.path, pod.get("spec"))
    template = dict(podset.template)
    if "spec" not in pod:
        template.pop("spec", None)
    elif pod["spec"] is not before["spec"]:
        template["spec"] = pod["spec"]
    if pod.get("metadata") is not before["metadata"]:
        added = not metadata_of(podset.template).get("namespace")
        metadata = {k: v for k, v in metadata_of(pod).items() if not (added and k == "namespace")}
        if metadata or "metadata" in template:
            template["metadata"] = metadata
    return into.put(obj, podset.path, template)
