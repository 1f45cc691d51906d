"""Declares settings, each with its flag, environment variable, default and help, and reads their values."""
