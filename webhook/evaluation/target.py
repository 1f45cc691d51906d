"""One object that a policy is evaluated on: the request's own, an embedded one, or a virtual Pod of a template.

What is said about a virtual Pod is re-rooted to the object: messages and problems get the template's path.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON, Attributes, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.facts.subject import Subject
from webhook.policy.matching import Match
from webhook.rules.problem import Problem
from webhook.schema import Mismatch
from webhook.typed.objects import Object
from webhook.workloads.podsets import PodSet


@dataclass(slots=True)  # not frozen, which makes it twice as slow to make
class EvaluationTarget:
    """One object that a policy is evaluated on, in the version that matched. Nobody changes its content.

    `attributes` are its own, which criteria see unless there are `criteria_attributes`, `match` is what `request`
    shows, `podset` the template of a virtual Pod, or the place of an object inside the request's. `object` and
    `old_object` are decoded, `written` is the object as it stands, to which changes are made; `mismatches` are what of
    it is not of its type, and where there are some, the objects are not decoded; `omitted` is where `object` is
    without something that is written; `place` is the path of its podset as it is printed. `has_new_spec` is whether
    the condition of `updates: spec` holds for it, None before anybody asks; `typed_objects` are the object as types
    have read it, `subjects` as facts and checks see it, by the `id` of what policies assume of the cluster, which each
    keeps alive.
    """

    attributes: Attributes
    match: Match
    object: JSON
    old_object: JSON
    written: JSON
    podset: PodSet | None = None
    mismatches: tuple[Mismatch, ...] = ()
    omitted: tuple[FieldPath, ...] = ()
    criteria_attributes: Attributes | None = None
    place: str = ""
    has_new_spec: bool | None = field(default=None, init=False)
    typed_objects: dict[type[Object], Any] = field(default_factory=dict, init=False, repr=False)
    subjects: dict[int, Subject] = field(default_factory=dict, init=False, repr=False)

    @property
    def attributes_for_criteria(self) -> Attributes:
        """Return the attributes that constraints and bindings match."""
        return self.criteria_attributes or self.attributes

    @property
    def kind(self) -> GroupVersionKind:
        """Return the kind of the object: Pod for a template."""
        return self.attributes.kind if self.podset else self.match.kind

    def reroot(self, message: str) -> tuple[str, str]:
        """Return the path that a message begins with, and the message with that path changed to the path in the whole
        object.

        The one place where a sentence is read: the text of a policy that is CEL alone may begin with a field path, as
        the API server's own errors do. What checks say has its path beside it.
        """
        path, rest = paths.split_off_leading_path(message) if message else ((), "")
        if self.podset is None:
            return paths.path_as_text(path), message
        where = paths.path_as_text(self.podset.locate(path)) if path else self.place
        if not message:
            return where, ""
        return where, f"{where}{self._reroot_other_paths(rest)}" if path else f"{where}: {message}"

    def locate(self, problem: Problem) -> Problem:
        """Return a problem of this object with its path in the whole object."""
        if self.podset is None:
            return problem
        path = self.podset.locate(paths.parse_path(problem.path)) if problem.path else self.podset.path
        return replace(problem, path=paths.path_as_text(path))

    def _reroot_other_paths(self, text: str) -> str:
        if self.podset is None or self.podset.elsewhere:
            return text
        return paths.replace_spec_prefixes(text, paths.path_as_text(self.podset.locate(("spec",))))
