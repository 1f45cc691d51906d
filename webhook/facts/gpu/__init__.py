"""Devices that containers request as extended resources, and the names by which they are known."""
