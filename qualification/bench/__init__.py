"""Load, record and count: the benchmark client, its raw records and the statistics over them."""
