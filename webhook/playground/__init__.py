"""The playground of `claimgate ui`: a page on loopback that evaluates what somebody types, each time in a process of
its own with bounded time and memory. Never part of a server that answers admission.
"""
