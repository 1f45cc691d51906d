"""Evaluates the policies on one request: finds the objects for each policy, and evaluates its expressions and
mutations.
"""
