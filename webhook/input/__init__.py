"""What a command reads: files, streams, object stores and logs, part by part, as documents with their places."""
