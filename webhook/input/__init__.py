"""Reads the input of a command part by part, as documents with their places: files, streams, object stores, logs. If a
file changes while a command runs, reads the file again.
"""
