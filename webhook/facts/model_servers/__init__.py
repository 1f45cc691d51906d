"""Servers of language models: compares what their commands start with the GPUs, probes and Services of the pods."""
