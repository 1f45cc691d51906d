"""Compares workloads with the ResourceQuotas and LimitRanges of their namespace."""
