"""A stand-in for the engine inside test images.

It speaks the wire contract's health, speech and metrics, and nothing else.
"""
