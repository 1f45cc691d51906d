"""Servers of language models: whether what their commands start fits the GPUs, probes and Services of their pods."""
