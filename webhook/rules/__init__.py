"""Defines rules as data: the catalogue of rules, levels and their effects, and problems in CEL and as text."""
