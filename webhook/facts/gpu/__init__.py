"""Devices that containers request as extended resources, and the catalogue of their names."""
