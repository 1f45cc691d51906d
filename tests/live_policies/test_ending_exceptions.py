"""A server reports exceptions and exemptions that end soon: at its start, each day, and after a change."""

from __future__ import annotations

import datetime as dt
import io
import json

from webhook.live_policies import exceptions
from webhook.live_policies.exceptions import EndingExceptions
from webhook.logs.structured import Log
from webhook.manifests.configuration import configuration_of_documents
from webhook.yamltext import yamlfile

FIRST = dt.date(2026, 12, 1)
TEXT = """\
exceptions:
- {rules: [a/b], owner: team, reason: r, expires: "2026-12-16"}
- {rules: [a/c, a/d], owner: team, reason: r, expires: "2026-12-01"}
- {rules: [a/c], owner: others, reason: r, expires: "2026-11-30"}
exemptions:
- {users: [b], owner: team, reason: r, expires: "2026-12-17"}
"""


def configuration(text: str = TEXT):
    return configuration_of_documents(yamlfile.load(text, "claimgate.yaml"), "claimgate.yaml")


def test_an_ending_exception_is_logged_once_a_day():
    out, files = io.StringIO(), [configuration()]
    watched = EndingExceptions(lambda: files[-1], Log(stream=out))

    def told(day: dt.date) -> list[tuple[str, str, int]]:
        out.seek(0)
        out.truncate()
        watched.announce(day)
        lines = map(json.loads, out.getvalue().splitlines())
        return [(each["message"], each["place"], each["days_left"]) for each in lines]

    expired, ends = ("exception has expired", "claimgate.yaml:4:3: exceptions[2]"), "exception ends soon"
    assert told(FIRST) == [(*expired, -1), (ends, "claimgate.yaml:3:3: exceptions[1]", 0)]
    assert watched.announce(FIRST) == {
        ("exception", "others", "2026-11-30"): -1,
        ("exception", "team", "2026-12-01"): 0,
        ("exception", "team", "2026-12-16"): 15,
        ("exemption", "team", "2026-12-17"): 16,
    }
    assert told(FIRST) == []
    assert told(FIRST + dt.timedelta(1))[-1] == (ends, "claimgate.yaml:2:3: exceptions[0]", 14)
    told_later = told(FIRST + dt.timedelta(2))
    assert told_later[-1] == ("exemption ends soon", "claimgate.yaml:6:3: exemptions[0]", 14)
    files.append(configuration("{}"))
    assert told(FIRST + dt.timedelta(2)) == []
    assert watched.announce(FIRST + dt.timedelta(2)) == {}


def test_thousands_of_ending_exceptions_are_logged_in_a_bound():
    row = '- {rules: [a/b], owner: team%d, reason: r, expires: "2026-12-01"}\n'
    file = configuration("exceptions:\n" + "".join(row % number for number in range(150)))
    days_left = EndingExceptions(lambda: file, Log(stream=io.StringIO())).announce(FIRST)
    assert len(days_left) == exceptions.MOST_ANNOUNCED
