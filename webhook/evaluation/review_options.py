"""Options of a review: the strictest action, advice, texts, and a trace.

A field with the name of a setting gets the value of the setting in every verb (assembly.review_options_of_settings).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from webhook.evaluation.trace import ReviewTrace

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer

EnforcementAction: TypeAlias = Literal["deny", "warn", "audit"]
"""The strictest action of a failure."""


class ReviewOptions(Struct, frozen=True, kw_only=True):
    """Options of a review. `advice` reports problems of that level too; `trace` records why policies report or not.

    `is_stored`: the object is in the cluster and its view, although it is reviewed as if it were created.
    `enforcement_action`: the strictest action of a failure; with `audit`, mutations also change nothing.
    `sees_all_namespaces`: messages may name objects of other namespaces, because an administrator reads them.
    `api_server_text`: denials are written as the API server's own plugins write them. `docs_address`: where the
    documentation is published; denials and warnings then link to the pages of rules. `warn_of_mutations`: users are
    warned of what mutating policies changed. `authorizer`: says what users may do; without one, results that depend on
    it are not known. `rules`: ids of the only rules, groups and policies that are reported; empty for all. `skip`: ids
    that are not reported.
    """

    advice: bool = False
    trace: ReviewTrace | None = None
    is_stored: bool = False
    enforcement_action: EnforcementAction = "deny"
    api_server_text: bool = False
    docs_address: str = ""
    warn_of_mutations: bool = False
    sees_all_namespaces: bool = False
    authorizer: Authorizer | None = None
    rules: Collection[str] = ()
    skip: Collection[str] = ()


DEFAULT: Final = ReviewOptions()
"""The options of an admission."""
