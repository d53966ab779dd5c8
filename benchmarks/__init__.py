"""locbook beside its peers: one table of oracles, which the tests check and ``python -m benchmarks`` times."""
