"""What the recipe can refuse. Only `main()` turns it into an exit code."""

from __future__ import annotations


class RecipeError(Exception):
    """A stage cannot run: an input of an earlier stage, a package or a setting is missing. The message names the
    mend."""

    exit_code = 1
