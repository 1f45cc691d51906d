"""Servers of language models: what their commands start, against the GPUs, probes and Services of their pods."""
