"""Converts policies of Kyverno, Gatekeeper and Kubewarden to equivalent native policies and bindings.

Knows the meaning of the kinds of these projects. Evaluates no policies and reads no files. If a part of a policy has
no exact native form, the policy is refused with the path of the part (`NotConverted`). No part is left out.
"""
