"""Options of a review: the strictest action, advice, texts, and a trace.

The settings of answers (webhook/settings/shared.py) are inherited fields. Another field with the name of a setting gets
the value of the setting in every verb (assembly.review_options_of_settings).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.evaluation.trace import ReviewTrace
from webhook.settings.shared import AnswerSettings

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


@dataclass(frozen=True, kw_only=True)
class ReviewOptions(AnswerSettings):
    """Options of a review: the settings of answers, and those below.

    `enforcement_action`: with `audit`, mutations are not made either. `advice`: problems of this level are also
    reported. `trace` records why policies report something or nothing. `is_stored`: the object is in the cluster and
    its view, although it is reviewed as if it were created. `docs_address`: the address of the published documentation;
    denials and warnings then link to the pages of rules. `sees_all_namespaces`: messages may name objects of other
    namespaces, because an administrator reads them. `authorizer`: knows what users may do; without it, results that
    depend on it are unknown. `rules`: ids of the only rules, groups and policies that are reported; empty for all.
    `skip`: ids that are not reported.
    """

    advice: bool = False
    trace: ReviewTrace | None = None
    is_stored: bool = False
    docs_address: str = ""
    sees_all_namespaces: bool = False
    authorizer: Authorizer | None = None
    rules: Collection[str] = ()
    skip: Collection[str] = ()


DEFAULT: Final = ReviewOptions()
"""The options of an admission request."""
