"""Writes docs/facts.md, the reference of all facts, from the declarations of the facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cel.types import Type
from webhook.cluster.interest import Interest, combine_interests
from webhook.facts.fact import FactStructure
from webhook.facts.subject import Fact, FactRegistry

_TITLE: Final = """\
# Facts

*Generated from the declarations of `FACTS` in `webhook/facts`.*

This page lists the facts that the expressions of a policy can read. The annotation `claimgate.dev/facts: gpu,dra` gives
a policy the variables `gpu` and `dra`.

- A fact has a declared type, so claimgate finds a misspelt field when it loads the policy.
- claimgate computes a fact when an expression first reads it.
- A missing text is `""`, and a missing list is empty. A field of type `dyn` is `null` if its value is not known.
- Paths in a fact are paths in the object that was sent.
- If a field needs an object that does not exist in the cluster, the field is computed without the object. A rule that
reads the field is then reported as not evaluated, unless the rule is broken.

With `claimgate.dev/expand: pods`, a policy is evaluated once for each pod template, and a fact describes only this
template, as a Pod. The section of a fact lists the fields with another meaning for a template. To check an object as a
whole, write a policy without `expand`, and list the kinds of workloads.
"""


def facts_as_markdown(registry: FactRegistry) -> str:
    """Return the whole page."""
    facts = [registry.fact(name) for name in registry.fact_names]
    index = "\n".join(f"- [{fact.name}](#{fact.name.lower()}): {_first_sentence(fact.about)}" for fact in facts)
    return "\n".join((_TITLE, index, "", *(line for fact in facts for line in _lines_about_fact(fact))))


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].removesuffix(".")


def _lines_about_fact(fact: Fact) -> Iterator[str]:
    yield from (f"## {fact.name}", "", fact.about, "", f"Type: {_type_as_text(fact.type)}", "", "```cel")
    yield from (*fact.examples, "```", "")
    if fact.lookups:
        yield from ("Looks up in the cluster:", "", *map(_lookup_as_text, combine_interests(fact.lookups)), "")
    if fact.expanded:
        yield from (
            "With `expand: pods`:",
            "",
            *(_line_about_expanded_field(fact.name, *each) for each in fact.expanded.items()),
            "",
        )
    for each in fact.structures:
        yield from _lines_about_structure(each)


def _line_about_expanded_field(name: str, field: str, meaning: str) -> str:
    return f"- `{name}.{field}` is {meaning}" if field else f"- `{name}` is {meaning}"


def _lookup_as_text(interest: Interest) -> str:
    fields = ", ".join(f"`{name}`" for name in sorted(interest.fields or ()))
    scope = interest.scope
    name = f" `{scope.name}` of `{scope.namespace}`" if scope.name else ""
    return f"- {interest.gvk.kind}{name} (`{interest.gvk.api_version}`): {fields or 'whether it exists'}"


def _lines_about_structure(each: FactStructure) -> Iterator[str]:
    yield from (f"### {_name_without_prefix(each.structure.name)}", "", "| field | type | meaning |", "|---|---|---|")
    for name, kind in each.structure.fields.items():
        yield f"| {name} | {_type_as_text(kind)} | {each.texts[name].replace('|', '&#124;')} |"
    yield ""


def _name_without_prefix(name: str) -> str:
    return name.removeprefix("claimgate.")


def _type_as_text(kind: Type) -> str:
    """Return a type in CEL's notation, without the prefix `claimgate.` of structures."""
    return f"`{str(kind).replace('claimgate.', '')}`"
