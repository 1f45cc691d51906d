"""Addresses in commands that have the form of the DNS name of a pod."""

import pytest

from webhook.facts.pods.pod_addresses import PodAddress, read_pod_address

TRAIN_0 = PodAddress(host="train", index=0, pod="train-0", subdomain="train")


@pytest.mark.parametrize(
    "text",
    [
        "train-0.train",
        "train-0.train:29500",
        "tcp://train-0.train:29500",
        "train-0.train.team",
        "train-0.train.team.svc.cluster.local:1",
    ],
)
def test_an_address_of_a_pod_is_read(text):
    assert read_pod_address(text, "team") == TRAIN_0


@pytest.mark.parametrize(
    "text",
    ["", "train-0", "train.train", "train-0.team", "train-0.train.other.svc", "10.0.0.1:29500", "$(HOST)-0.train"],
    ids=["nothing", "no subdomain", "no index", "a Service of a namespace", "another namespace", "an IP", "a variable"],
)
def test_another_address_is_not_read(text):
    assert read_pod_address(text, "team") is None
