"""Reports mistakes of PolicyExceptions in files, for `claimgate policies check`, before an API server stores them.

The server says the same in the status of stored ones (server/exception_notices.py).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.lookup import namespace_and_name
from webhook.manifests.configuration_file import ConfigurationFile
from webhook.manifests.models import ShapeError
from webhook.manifests.policy_exceptions import (
    effect_of_exception,
    is_policy_exception,
    parse_policy_exception,
)
from webhook.policy.configured_rules import KnownNames, mistakes_of_policy_exception
from webhook.policy.policy_set import PolicySet
from webhook.rules import pages
from webhook.text.wording import counted
from webhook.yamltext.yamlfile import Document

_PLACES: dict[str, FieldPath] = {"Expired": ("spec", "expires"), "TooLong": ("spec", "expires")}
"""The fields that the reasons of an effect are about."""


def check_policy_exceptions(
    documents: Iterable[Document], policies: PolicySet, configuration: ConfigurationFile, day: dt.date
) -> list[dict[str, Any]]:
    """Return for each PolicyException its `kind`, `name` with its namespace, `file`, and `mistakes` with their places.

    Args:
        documents: documents of files; those of other kinds are left out.
        policies: policies of the site, whose rules may be named beside the shipped ones.
        configuration: the file with the bounds; without one, bounds are not checked.
        day: today. An object of a file counts as created today.
    """
    names = KnownNames.of(policies, frozenset(pages.shipped_rule_ids()))
    checked: list[dict[str, Any]] = []
    for document in documents:
        for inside, value in objects_of_list(document.value):
            if not is_policy_exception(value):
                continue
            told = _mistakes(value, names, configuration, day)
            checked.append(
                {
                    "kind": "PolicyException",
                    "name": "/".join(filter(None, namespace_and_name(value))),
                    "file": document.file,
                    "mistakes": [str(document.problem((*inside, *path), text)) for path, text in told],
                }
            )
    return checked


def _mistakes(
    value: JSON, names: KnownNames, configuration: ConfigurationFile, day: dt.date
) -> Iterator[tuple[FieldPath, str]]:
    try:
        exception = parse_policy_exception(value)
    except ShapeError as error:
        yield from error.problems
        return
    yield from mistakes_of_policy_exception(exception, names)
    effect = effect_of_exception(exception, configuration.value, day)
    if not effect.holds and (configuration.document is not None or effect.reason == "Expired"):
        yield _PLACES.get(effect.reason, ("spec", "rules")), f"it has no effect: {effect.message}"


def lines_about_exceptions(checked: Sequence[dict[str, Any]], configuration: ConfigurationFile) -> Iterator[str]:
    """Yield a line about all PolicyExceptions, then the mistakes of each."""
    if not checked:
        return
    wrong = sum(bool(one["mistakes"]) for one in checked)
    bounds = configuration.path or "no configuration file, so bounds are not checked: name it with --config"
    verdict = f"{wrong} {'has' if wrong == 1 else 'have'} mistakes" if wrong else "no mistake found"
    yield f"{counted(len(checked), 'PolicyException')}: {verdict} ({bounds})"
    for one in checked:
        yield from (f"    {text}" for text in one["mistakes"])
