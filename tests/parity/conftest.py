"""Parity tests need the official package, which only their own session installs; elsewhere they are not collected."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("qwen_tts") is None:
    collect_ignore_glob = ["test_*.py"]
