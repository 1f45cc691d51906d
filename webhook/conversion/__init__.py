"""Converts policies of Kyverno, Gatekeeper and Kubewarden to equivalent native policies and bindings.

Evaluates no policies and reads no files. A policy with a part that has no exact native form is refused, with the path
of the part (`NotConverted`). No part is left out.
"""
