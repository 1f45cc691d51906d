"""Reads YAML text with the places of all paths, and writes values as YAML.

JSON is YAML, too. The only package that knows the YAML library. Knows no files.
"""

from webhook.yamltext.documents import read_documents, split_documents
from webhook.yamltext.dumping import dump
from webhook.yamltext.json_places import JsonPlaces
from webhook.yamltext.places import Places
from webhook.yamltext.reading import YamlError

__all__ = ["JsonPlaces", "Places", "YamlError", "dump", "read_documents", "split_documents"]
