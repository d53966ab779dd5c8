"""The simulator's lanes, before any kernel runs."""

from tests.cuda import lanes

lanes.install()
