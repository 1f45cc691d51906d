"""YAML and JSON: reads files and texts with the place of each value, and writes values as YAML.

Only this package imports the YAML library. The package decides which files may be opened, and has no rules about
objects of Kubernetes.
"""

from webhook.yamltext.documents import read_documents, split_documents
from webhook.yamltext.dumping import dump
from webhook.yamltext.places import JsonPlaces, Places
from webhook.yamltext.reading import YamlError

__all__ = ["JsonPlaces", "Places", "YamlError", "dump", "read_documents", "split_documents"]
