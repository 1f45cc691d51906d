"""The kinds whose failures are advised on, with the fields that this advice reads."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.facts.volcano_objects.types import LifecyclePolicy
from webhook.typed.fields import Part, Parts
from webhook.typed.objects import Object
from webhook.typed.pods import LabelSelector
from webhook.typed.view import Typed


class VolcanoJobOrTask(Typed):
    """A Job of Volcano, or a task of it."""

    policies = Parts(LifecyclePolicy)


class PodDisruptionBudgetSpec(Typed):
    """policy/v1 PodDisruptionBudgetSpec."""

    selector = Part(LabelSelector)


class PodDisruptionBudget(Object):
    """policy/v1 PodDisruptionBudget."""

    gvk = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
    spec = Part(PodDisruptionBudgetSpec)
