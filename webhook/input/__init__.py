"""The input of a command: files, streams, object stores and logs, part by part, as documents with their places."""
