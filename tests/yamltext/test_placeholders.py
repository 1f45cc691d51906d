"""Which texts count as placeholders that a person or a tool replaces, such as `<name>` and `${NAME}`."""

from __future__ import annotations

import pytest

from webhook.apimachinery.attributes import JSON
from webhook.yamltext.placeholders import (
    has_placeholder_variable,
    is_placeholder,
    is_placeholder_for_name,
    is_placeholder_for_non_text,
    is_unquoted_bracket_placeholder,
)


@pytest.mark.parametrize(
    "text",
    [
        *("$N", "${N}", "gpu-$(N)", "{{ .Values.n }}", "a{{n}}b"),
        *(
            "__NUM_NODES__",
            "__ServiceName__-hpa",
            "__containerPort__",
            "spark-__APP-ID__",
            "PLACEHOLDER_NUM_GPU",
            "REPLACEME",
            "CHANGEME-gpu",
            "placeholder_service_account",
            "replicas_placeholder",
            "<queue>",
            "<이름>",
            "< app 이름 >",
            "<ADD LUN ID Here>",
            "gs://<bucket>/a",
            "...",
            "…",
        ),
        *("[[[size]]", "[[[a [[size]]", "((((tag))", "((a ((tag))", "a < b <queue>", "%1 %BUCKET%", "@a @NODES@"),
        *("[[size]]", "a-[[ name ]]", "((tag))", "<%= queue %>", "@NUM_NODES@", "gs://%BUCKET%/a"),
        *("@APP-ID@", "%APP-ID%"),
        *("#{QUEUE}#", "a-#{Name.Of}", "#{{PORT}}#"),
    ],
)
def test_a_placeholder_is_recognized(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "gpu-1", "nvidia.com/gpu", "{n}", "500m"),
        *(
            "a__b",
            "__init__",
            "__a__B",
            "_" * 1000 + "A",
            "a < b",
            "<",
            "->",
            "a...b",
            "v1.2",
            "placeholder",
            "image-placeholder",
        ),
        *("[" * 1000 + "]]", "(" * 1000 + "))", "[[[a [[ b]", "((a (( b)"),
        *("a[0]", "[[ -f x ]]", "img@sha256:ab", "50%", "a@b@c", "((1+2))", "[[1, 2]]"),
        *("#", "#{", "#{}", "#{1}", "#{" * 1000),
    ],
)
def test_a_text_without_placeholders(text: str) -> None:
    assert not is_placeholder(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("g-$N", True), ("${N}", True), ("$(N)", True), ("{{ .n }}", True), ("*$@", False), ("a$", False)],
)
def test_a_single_dollar_sign_names_no_variable(text: str, expected: bool) -> None:
    assert has_placeholder_variable(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NUM_NODES", True),
        ("PORT", True),
        ("TRUE", False),
        ("P0RT", False),
        ("GPU_2_COUNT", True),
        ("${N}", True),
        ("ONE", False),
        ("Num_Nodes", False),
        ("_", False),
        ("(dashboard_port)", True),
        ("(8080)", False),
        ("__port__", True),
        ("__8080__", False),
        ("Boolean", True),
        ("number", True),
        ("Numbers", False),
        ("ref+op://kubernetes/a", True),
        ("a ref+op", False),
        ("ENC[AES256_GCM,data:x,iv:y,tag:z,type:int]", True),
        ("a ENC[", False),
    ],
)
def test_a_word_that_is_replaced_by_a_number_is_a_placeholder(text: str, expected: bool) -> None:
    assert is_placeholder_for_non_text(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CLUSTER_QUEUE_NAME", True),
        ("MODEL_NAME-web", True),
        ("web.MODEL_NAME", True),
        ("<queue>", True),
        ("Cluster_Queue", False),
        ("webMODEL_NAME", False),
        ("GPUS", False),
        ("GPUS-web", False),
        ("gpus", False),
    ],
)
def test_an_upper_case_name_is_a_placeholder(text: str, expected: bool) -> None:
    assert is_placeholder_for_name(text) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *(([["size"]], True), ({"num_nodes": None}, True), ([["number of nodes"]], True)),
        *((["size"], False), ([[1]], False), ([["a", "b"]], False), ({"a": 1}, False), ({}, False), ([], False)),
        *(({"a": None, "b": None}, False), (7, False), ([[{"a": None}]], False)),
        *(
            (["FileSystemId"], True),
            (["DNSName"], True),
            (["IfNotPresent"], False),
            (["fs-01"], False),
            (["Id"], False),
        ),
        *((["Always | Never | OnFailure"], True), (["Always"], False), (["a | b", "c"], False)),
        *(([{"name": "String"}], True), ([{"app": "web"}], False), ([{"name": "String", "b": "a"}], False)),
    ],
)
def test_unquoted_bracket_placeholders_are_recognized(value: JSON, expected: bool) -> None:
    assert is_unquoted_bracket_placeholder(value) is expected
