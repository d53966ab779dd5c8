"""locbook beside its peers: ``python -m benchmarks`` (``make bench``) times them, one file a family of rows.

:mod:`~benchmarks.case` says what a row is, :mod:`~benchmarks.timing` how it is timed, :mod:`~benchmarks.roofline` what
the machine could do at best, which :mod:`~benchmarks.peak` measures. The oracle table (:mod:`~benchmarks.oracles`) is
shared with the tests.
"""
