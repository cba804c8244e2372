"""The shipped image: built reproducibly, named by digest, run hardened, and inspected.

Import the modules; no code here.
"""
