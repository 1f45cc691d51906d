"""YAML text: its values, the places of their paths, and values as YAML.

The only package that knows the YAML library. Knows no files.
"""

from webhook.yamltext.documents import parts_of, values
from webhook.yamltext.dumping import dump
from webhook.yamltext.places import Places
from webhook.yamltext.reading import YamlError

__all__ = ["Places", "YamlError", "dump", "parts_of", "values"]
