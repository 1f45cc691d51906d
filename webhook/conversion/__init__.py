"""Policies of Kyverno, Gatekeeper and Kubewarden as equivalent native policies and bindings.

It knows what the kinds of these projects mean. It does not know how policies are evaluated, and it reads no files.
A part of a policy without an exact native form is refused by name (`NotConverted`), and never left out.
"""
