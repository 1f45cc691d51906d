"""Arguments of model servers: spellings, abbreviations, unknown values, and endless command lines."""

import pytest

from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.facts.model_servers.arguments import read_arguments
from webhook.facts.model_servers.started_servers import read_server_catalogue, started_server
from webhook.typed.pods import Container
from webhook.typed.view import ReadingContext


def read(server, *words, is_in_script=False):
    return read_arguments(words, read_server_catalogue().flags[server], Deadline(), is_in_script=is_in_script)


@pytest.mark.parametrize(
    ("server", "words", "tensor"),
    [
        ("vLLM", ["-tp", "4"], 4),
        ("vLLM", ["-tp=4"], 4),
        ("vLLM", ["--tensor_parallel_size=4"], 4),
        ("vLLM", ["--tensor", "4"], 4),
        ("vLLM", ["-tp", "4", "--tensor-parallel-size", "2"], 2),
        ("vLLM", ["--enforce-eager", "-tp", "4"], 4),
        ("vLLM", ["-tp4"], 1),
        ("vLLM", ["--tensor-parallel-size 4"], 1),
        ("vLLM", ["-tp", "$TP"], None),
        ("SGLang", ["--tp", "4"], 4),
        ("SGLang", ["--tp_size", "4"], 1),
        ("trtllm-serve", ["--tp_size", "4"], 4),
        ("trtllm-serve", ["--tp", "4"], 1),
    ],
)
def test_a_size_is_read_as_the_server_reads_it(server, words, tensor):
    assert read(server, *words).number("tensor") == tensor


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--attention-data-parallel-size", "2"], {"attention-data": "2"}),
        (["--attn-dp", "2"], {"attention-data": "2"}),
        (["--devi", "cuda"], {"device": "cuda"}),
        (["--dist-init", "head:5000"], {"address": "head:5000"}),
    ],
)
def test_flags_of_sglang_are_read_as_by_its_parser(words, values):
    """The answers of `ServerArgs.add_cli_args` of sglang 0.5.23."""
    assert read("SGLang", *words).values == values


@pytest.mark.parametrize(
    ("words", "positional"),
    [
        (["--allowed-local-media-path", "/data", "m"], ("m",)),
        (["--fully-sharded-loras", "m"], ("m",)),
        (["--head", "m"], ("m",)),
    ],
)
def test_the_model_is_found_beside_flags_of_vllm(words, positional):
    """The answers of `AsyncEngineArgs.add_cli_args` of vllm 0.11.0. --headless is a flag of `vllm serve`."""
    assert read("vLLM", *words).positional == positional


@pytest.mark.parametrize("word", ["--pp", "--dist", "--nccl", "--attention"])
def test_beginnings_that_sglang_refuses(word):
    """argparse of sglang 0.5.23 calls each of these flags ambiguous."""
    assert read("SGLang", word, "2").ambiguous == (word,)


@pytest.mark.parametrize("word", ["--tp_size", "--tensor_parallel_size", "--node_rank", "-tp"])
def test_spellings_that_sglang_does_not_know(word):
    """argparse of sglang 0.5.23 calls each of these flags unrecognized. vLLM reads `_` as `-`."""
    assert list(read("SGLang", word, "2").mistaken) == [word]


@pytest.mark.parametrize(
    ("words", "is_open"),
    [
        (["$MODEL", "-tp", "4"], False),
        (["/m", "-tp", "4", "$ARGS"], True),
        (["$MODEL_ARGS", "-tp", "4"], True),
        (["/m", "--enforce-eager", "$ARGS"], True),
        (["/m", "--port", "$PORT"], False),
        (["/m", "--no-such-flag", "$X"], True),
    ],
)
def test_a_script_may_add_arguments(words, is_open):
    assert read("vLLM", *words, is_in_script=True).is_open is is_open


@pytest.mark.parametrize(
    "container",
    [
        pytest.param({"command": ["sh", "-c", "vllm serve m " + "-tp 4 " * 20_000]}, id="flags in a script"),
        pytest.param({"command": ["vllm", "serve", *["-tp", "4"] * 20_000]}, id="flags as items"),
        pytest.param({"command": ["vllm", "serve", *["--tensor-parallel-size 4"] * 5_000]}, id="joined words"),
        pytest.param({"command": ["sh", "-c", "vllm serve m " + "$(" * 40_000]}, id="parentheses"),
    ],
)
def test_long_command_lines_are_charged(container):
    read_server_catalogue()
    with pytest.raises(BudgetExceeded):
        started_server(Container.of(container, (), ReadingContext(Deadline(0.0))))


@pytest.mark.parametrize(
    ("server", "words", "values"),
    [
        ("vLLM", ["m", "--language-model-only", "-dpm"], {"data-ports": ""}),
        ("vLLM", ["--disable-access-log-for-endpoints", "/health", "m"], {}),
        ("vLLM", ["m", "--device-memory-utilization", "0.5"], {"memory": "0.5"}),
        ("SGLang", ["--return-hidden-states-mode", "all", "--tp", "2"], {"tensor": "2"}),
        ("LMDeploy", ["m", "--server_port", "8000", "--eager-mode"], {"port": "8000"}),
        ("TGI", ["--cuda-graphs", "1,2", "--num-shard", "2"], {"shards": "2"}),
    ],
)
def test_newer_flags_are_read_as_by_the_parser(server, words, values):
    """The answers of the parsers of vLLM 0.33.0, SGLang 0.5.23 and LMDeploy 0.18.0. For TGI, the source."""
    assert read(server, *words).values == values


@pytest.mark.parametrize(
    ("server", "word"),
    [("vLLM", "--distributed"), ("vLLM", "--ssl"), ("vLLM", "--api"), ("SGLang", "--attn"), ("SGLang", "--con")],
)
def test_beginnings_of_several_flags(server, word):
    """argparse of vLLM 0.33.0 and SGLang 0.5.23 calls each of these flags ambiguous."""
    assert read(server, word, "2").ambiguous == (word,)


@pytest.mark.parametrize(
    ("words", "is_server"),
    [
        (["m", "--host", "0.0.0.0"], True),
        (["serve", "m"], True),
        (["grpc", "m"], False),
        (["disaggregated", "-c", "/c.yaml"], False),
    ],
)
def test_commands_of_trtllm_serve(words, is_server):
    container = Container.of({"command": ["trtllm-serve", *words]}, (), ReadingContext(Deadline()))
    assert (started_server(container) is not None) is is_server


@pytest.mark.parametrize(
    ("server", "words", "values"),
    [
        ("TGI", ["-p8080", "--num-shard=2"], {"port": "8080", "shards": "2"}),
        ("TGI", ["--model-id", "m", "--sharded", "true", "-e"], {"model": "m", "sharded": "true"}),
        ("trtllm-serve", ["m", "--", "--host", "0.0.0.0"], {}),
        ("trtllm-serve", ["m", "--host", "--tp_size", "2"], {"host": "--tp_size"}),
        ("trtllm-serve", ["m", "--tokenizer", "--config", "--tp_size=2"], {"tensor": "2"}),
        ("trtllm-serve", ["m", "--trust_remote_code", "--tp_size", "2"], {"tensor": "2"}),
    ],
)
def test_flags_are_read_as_by_clap_and_click(server, words, values):
    """The answers of TGI's launcher (db931fcf, clap 4.6) and of the click command of trtllm-serve (00209af1)."""
    assert read(server, *words).values == values


@pytest.mark.parametrize(("written", "number"), [("+2", 2), ("08", 8), ("2.0", None), ("-1", None), (" 2", None)])
def test_a_number_is_read_as_by_every_parser(written, number):
    """clap, click and argparse read the first two. The others are refused, or read by some parsers alone."""
    assert read("TGI", f"--num-shard={written}").number("shards") == number


def test_a_flag_that_is_given_twice_is_noted():
    """clap refuses it. argparse and click use the last value."""
    assert read("TGI", "--port", "80", "-p", "81").repeated == ("-p",)
