"""The controlled comparison: two subjects by turns on one machine, two sealed bundles, and a record of every run."""
