"""Which kinds carry pods, and where: one table, read as data.

table     kinds.yaml and rows of a site's own -> Table of Rows
podsets   object + Table -> PodSets: name, path, template, count

This package has no policies, no clusters, and no facts about the contents of a template.
"""
