"""Part II: classical local models."""

from .density import density, log_density

__all__ = ["density", "log_density"]
