"""Reads the input of a command part by part, as documents with their places: files, streams, object stores, logs."""
