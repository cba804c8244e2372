"""Two sealed bundles against each other: matched requests, effects with intervals, a verdict in words."""
