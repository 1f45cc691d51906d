"""The reference of all facts, as Markdown, from their declarations: docs/facts.md, which a test holds to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cel.types import Type
from webhook.cluster.interest import Interest, combine_interests
from webhook.facts.fact import Fact, FactStructure
from webhook.facts.registry import FactRegistry

_TITLE: Final = """\
# Facts

*Made from the declarations of `FACTS` in `webhook/facts`.*

A policy with the annotation `claimgate.dev/facts: gpu,dra` may read these names in its expressions. A fact has a
declared type, so that a misspelt field is found when the policy is loaded, and is computed when an expression first
reads it. A text that is not there is `""`, a list that is not there is empty, and what nobody can know is `null`: a
field of type `dyn` may be. Paths are those of the object that was sent.

A field that needs an object of the cluster which is not there is missing it: a rule that reads the field and holds is
reported as not evaluated.

With `claimgate.dev/expand: pods`, a policy is evaluated once for each pod template, and a fact is computed of that
template alone, as a Pod. A fact that means less there says so. To judge an object as a whole, write a policy without
`expand` that names the kinds of workloads.
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
    return f"- {interest.gvk.kind}{name} (`{interest.gvk.api_version}`): {fields or 'whether it is there'}"


def _lines_about_structure(each: FactStructure) -> Iterator[str]:
    yield from (f"### {_name_without_prefix(each.structure.name)}", "", "| field | type | meaning |", "|---|---|---|")
    for name, kind in each.structure.fields.items():
        yield f"| {name} | {_type_as_text(kind)} | {each.texts[name].replace('|', '&#124;')} |"
    yield ""


def _name_without_prefix(name: str) -> str:
    return name.removeprefix("claimgate.")


def _type_as_text(kind: Type) -> str:
    """Write a type as CEL does, structures without the project's name before them."""
    return f"`{str(kind).replace('claimgate.', '')}`"
