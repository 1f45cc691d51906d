"""Reads the input of a command part by part, as documents with their places: files, streams, object stores, logs. Reads
files again that change while a command runs.
"""
