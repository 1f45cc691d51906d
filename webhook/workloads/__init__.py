"""Reads a table of the kinds that have pods, with the places of the pods, and applies the table to objects.

table     kinds.yaml and rows of a site's own -> Table of Rows
podsets   object + Table -> PodSets: name, path, template, count

This package has no policies, no clusters, and no rules about the contents of templates.
"""
