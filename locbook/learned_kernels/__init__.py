"""Part IV: kernels that are learned."""

from .metric_learning import LearnedMetric, learn_metric

__all__ = ["LearnedMetric", "learn_metric"]
