"""`claimgate rollout`: counts the requests that claimgate let through and would refuse with enforcement.

Recognizes each source by the text of its lines:

- metrics by the counter `claimgate_broken_rules_total`
- logs of the server by the fields `would_deny` and `would_warn`
- audit logs of API servers by the annotations `would-deny` and `would-warn`

A rule that a request breaks in both phases counts once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
import typer

from webhook.admission.enforce import WITHHELD_KEYS
from webhook.apimachinery.attributes import controller_name
from webhook.commands import output
from webhook.commands.backtest_part import MOST_NAMES, OTHERS
from webhook.commands.options import complete_output
from webhook.errors import ConfigurationError, InputProblem
from webhook.input import log_lines
from webhook.rules.text import shorten_text
from webhook.text import terminal
from webhook.text.wording import counted, some_of
from webhook.yamltext.yamlfile import problem_of_file_not_read

_PENDING: Final = 1_000
"""At most this many requests of the mutating phase wait for the line of their validating phase."""
_LONGEST: Final = 253
_METRIC: Final = "claimgate_broken_rules_total"
FORMATS: Final = ("text", "json")
_DIGITS: Final = 4
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def command(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Metrics, JSON logs of the server, and audit logs of an API server, also gzip; folders; - for stdin.",
        ),
    ],
    *,
    since: Annotated[
        str, typer.Option(metavar="DURATION", help="Count only requests of this period, such as 7d or 12h.")
    ] = "",
    chosen: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT[=FILE]",
            help="text or json; repeatable.",
            autocompletion=complete_output(*FORMATS),
        ),
    ] = None,
) -> int:
    """Count the requests that passed only because claimgate does not deny yet.

    Reads what a server wrote while it only warned or audited. Counts by rule, namespace and owner: the controller of
    the object, or the user. Shows the newest request of each rule, and the setting that makes the rule a warning.
    Metrics have counts by rule only, since the start of each server.

    Exits with 1 if a request would have been refused, and with 2 if a file cannot be read.
    """
    outputs = output.parse_outputs(chosen, FORMATS)
    counts = WithheldCounts(since=datetime.now(UTC) - _duration(since) if since else None)
    log_files = log_lines.list_log_files(source)
    problems = [*log_files.problems, *map(problem_of_file_not_read, log_files.not_read)]
    for file in log_files.files:
        for part in log_lines.read_log_parts(file):
            problems += [part.problem] if part.problem else []
            counts.count_lines(part.lines, part.file, part.first)
    if not (problems or counts.lines or counts.old or counts.undated):
        expected = "expected metrics, lines of the server's log in JSON, or events of an audit log"
        problems.append(InputProblem(message=f"nothing of claimgate was found; {expected}", file=" ".join(source)))
    terminal.print_to_stderr(f"error: {problem}" for problem in problems)
    output.write_to_outputs(
        outputs, {"text": lambda: terminal.lines(lines_of_counts(counts)), "json": lambda: _as_json(counts)}
    )
    is_refused = counts.denials or counts.metrics.get("would_deny")
    return 2 if problems else int(bool(is_refused))


def _duration(text: str) -> timedelta:
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS):
        raise ConfigurationError(f"--since: expected a number with s, m, h, d or w, such as 7d, found `{text}`")
    return timedelta(**{unit: int(number)})


def _as_json(counts: WithheldCounts) -> str:
    def rules(named: dict[str, WithheldCount]) -> object:
        return {
            rule: {
                "requests": count.requests,
                "namespaces": dict(count.namespaces.most_common()),
                "owners": dict(count.owners.most_common()),
                "newest": asdict(count.newest) if count.newest else None,
            }
            for rule, count in sorted(named.items(), key=lambda each: (-each[1].requests, each[0]))
        }

    data = {
        "since": counts.since.isoformat() if counts.since else None,
        "wouldDeny": rules(counts.denials),
        "wouldWarn": rules(counts.warnings),
        "metrics": {action: dict(each.most_common()) for action, each in sorted(counts.metrics.items())},
        "linesNotUnderstood": counts.others,
        "linesWithoutTime": counts.undated,
    }
    return f"{terminal.escape_json_text(json.dumps(data, ensure_ascii=False, indent=2))}\n"


@dataclass(frozen=True, slots=True)
class WithheldRequest:
    """A request that would have been refused or warned about, with its place in a log."""

    time: str
    operation: str
    kind: str
    namespace: str
    name: str
    owner: str
    place: str


@dataclass(slots=True)
class WithheldCount:
    """The counts of one rule, and its newest request."""

    requests: int = 0
    namespaces: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    newest: WithheldRequest | None = None

    def add(self, request: WithheldRequest) -> None:
        self.requests += 1
        for counter, name in ((self.namespaces, request.namespace or "(none)"), (self.owners, request.owner)):
            counter[name if name in counter or len(counter) < MOST_NAMES else OTHERS] += 1
        if self.newest is None or request.time >= self.newest.time:
            self.newest = request


@dataclass(slots=True)
class WithheldCounts:
    """All counts: `denials` and `warnings` by rule from logs, `metrics` by action and rule.

    Attributes:
        lines: the number of lines that were understood.
        old: the number of requests before `since`.
        undated: the number of requests without a readable time, if `since` is set.
        others: the number of lines that were not understood.
    """

    since: datetime | None = None
    denials: dict[str, WithheldCount] = field(default_factory=dict)
    warnings: dict[str, WithheldCount] = field(default_factory=dict)
    metrics: dict[str, Counter[str]] = field(default_factory=dict)
    lines: int = 0
    old: int = 0
    undated: int = 0
    others: int = 0
    _mutated: dict[tuple[str, ...], set[str]] = field(default_factory=dict)

    def count_lines(self, lines: Iterable[bytes], file: str, first: int) -> None:
        """Count the lines of a file. `first` is the number of the first line."""
        for number, line in enumerate(lines, first):
            if line.startswith((b"claimgate_", b"# HELP claimgate_", b"# TYPE claimgate_")):
                self._count_metric(line)
            elif line.strip() and not line.startswith(b"#"):
                self._count_log_line(line, f"{file}:{number}")

    def _count_metric(self, line: bytes) -> None:
        name, _, rest = line.decode(errors="replace").partition("{")
        labels, _, number = rest.partition("} ")
        if name == _METRIC:
            try:
                count = int(float(number.split()[0]))  # a timestamp may follow
            except (IndexError, OverflowError, ValueError):
                self.others += 1
                return
            pairs = [each.partition('="') for each in labels.removesuffix('"').split('",')]
            values = {key: value for key, _, value in pairs}
            if count > 0:
                counts = self.metrics.setdefault(values.get("enforcement_action", ""), Counter())
                counts[values.get("rule", "")] += count
        self.lines += 1

    def _count_log_line(self, line: bytes, place: str) -> None:
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = None
        read = _read_log_line(value, place) if isinstance(value, dict) else None
        if read is None:
            self.others += 1
            return
        request, rules = read
        if self.since is not None:
            time = _time_of_text(request.time)
            if time is None or time < self.since:
                self.undated += time is None
                self.old += time is not None
                return
        self.lines += 1
        counted_before = self._rules_of_first_phase(value, request, rules)
        for counts, key in ((self.denials, "deny"), (self.warnings, "warn")):
            for rule in rules[key]:
                if rule in counted_before:
                    continue
                named = rule if rule in counts or len(counts) < MOST_NAMES else OTHERS
                counts.setdefault(named, WithheldCount()).add(request)

    def _rules_of_first_phase(
        self, value: Mapping[str, Any], request: WithheldRequest, rules: Mapping[str, Sequence[str]]
    ) -> set[str]:
        """Return the rules that the request broke in the mutating phase. The log has a line for each phase."""
        key = (request.operation, request.kind, request.namespace, request.name, _shown(value.get("user")))
        if value.get("phase") == "validate":
            return self._mutated.pop(key, set())
        if value.get("phase") == "mutate":
            if len(self._mutated) >= _PENDING:
                self._mutated.pop(next(iter(self._mutated)))
            self._mutated[key] = {rule for listed in rules.values() for rule in listed}
        return set()


def _read_log_line(value: Mapping[str, Any], place: str) -> tuple[WithheldRequest, Mapping[str, Sequence[str]]] | None:
    """Return a request and its rules by the withheld action (`deny` or `warn`). Return None for any other line."""
    if value.get("message") == "review":
        rules = {key: _texts(value.get(f"would_{key}")) for key in WITHHELD_KEYS}
        owner = value.get("owner") or value.get("user")
        time, operation, kind, namespace, name = (
            _shown(value.get(key)) for key in ("time", "operation", "kind", "namespace", "name")
        )
        return WithheldRequest(time, operation, kind, namespace, name, _shown(owner), place), rules
    if value.get("kind") == "Event" and str(value.get("apiVersion")).startswith("audit.k8s.io/"):
        if value.get("stage") not in (None, "ResponseComplete"):
            return WithheldRequest(_shown(value.get("stageTimestamp")), "", "", "", "", "", place), _no_rules()
        return _request_of_event(value, place), _rules_of_annotations(value.get("annotations"))
    return None


def _request_of_event(event: Mapping[str, Any], place: str) -> WithheldRequest:
    object_ref, user = _fields_of(event, "objectRef"), _fields_of(event, "user")
    obj = event.get("requestObject")
    owner = controller_name(obj) or user.get("username")
    time, verb = (_shown(event.get(key)) for key in ("stageTimestamp", "verb"))
    resource, namespace, name = (_shown(object_ref.get(key)) for key in ("resource", "namespace", "name"))
    return WithheldRequest(time, verb, resource, namespace, name, _shown(owner), place)


def _rules_of_annotations(annotations: Any) -> Mapping[str, Sequence[str]]:
    """An API server puts the name of the webhook before each key, so several annotations can have the same end."""
    rules: dict[str, dict[str, None]] = {"deny": {}, "warn": {}}
    for key, text in annotations.items() if isinstance(annotations, dict) else ():
        webhook, _, name = key.rpartition("/")
        for would, own in WITHHELD_KEYS.items():
            if name == own and webhook.endswith("claimgate.dev") and isinstance(text, str):
                rules[would].update(dict.fromkeys(text.split(", ")))
    return {would: list(rules_of_action) for would, rules_of_action in rules.items()}


def _fields_of(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def _no_rules() -> Mapping[str, Sequence[str]]:
    return {"deny": (), "warn": ()}


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _shown(value: Any) -> str:
    return shorten_text(str(value), _LONGEST) if value else ""


def _time_of_text(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def lines_of_counts(counts: WithheldCounts) -> Iterator[str]:
    """Yield the lines of the report as text."""
    since = f" since {counts.since:%Y-%m-%dT%H:%M:%SZ}" if counts.since else ""
    yield from _lines_of_rules(f"would be refused{since}", counts.denials)
    yield from _lines_of_rules(f"would get a warning{since}", counts.warnings)
    for action, title in (("would_deny", "be refused"), ("would_warn", "get a warning")):
        if rules := counts.metrics.get(action):
            yield f"would {title}, by the metrics of servers since their start:"
            yield from (f"  {count:6}  {rule}" for rule, count in rules.most_common())
    if not (counts.denials or counts.warnings or any(map(counts.metrics.get, ("would_deny", "would_warn")))):
        yield f"no request in these files would be refused or get a warning{since}"
    if counts.undated:
        yield f"not counted, because the time cannot be read: {counted(counts.undated, 'line')}"


def _lines_of_rules(title: str, rules: Mapping[str, WithheldCount]) -> Iterator[str]:
    if not rules:
        return
    yield f"{title}:"
    for rule, count in sorted(rules.items(), key=lambda each: (-each[1].requests, each[0])):
        yield f"  {count.requests:6}  {rule}"
        yield f"          namespaces: {_listed(count.namespaces)}"
        yield f"          owners: {_listed(count.owners)}"
        if (last := count.newest) is not None:
            place = "/".join(filter(None, (last.namespace, last.name)))
            yield f"          newest: {last.time} {last.operation} {last.kind} {place} ({last.place})"
        setting = f"`levels: {{rules: {{{rule}: warn}}}}` in claimgate.yaml"
        yield f"          to warn instead: {setting if '/' in rule else '`validationActions: [Warn]` in its binding'}"


_SHOWN: Final = 5


def _listed(names: Counter[str]) -> str:
    return some_of([f"{name} {count}" for name, count in names.most_common()], _SHOWN)
