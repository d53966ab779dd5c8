r"""The local mean as a layer of PyTorch: tensors in, tensors out, and gradients.

Import it by its name, ``import locbook.torch``; PyTorch is no requirement of the library, and is asked for when
:func:`local_mean` is called. Forward it is :func:`locbook.local_mean`, backward :func:`locbook.local_mean_vjp`: no
array of all pairs is made, and what PyTorch keeps for the backward pass are the arguments.

Tensors on an NVIDIA card stay there, and so do the means and the gradients: both sides share their memory. What a
kernel holds, its parameters, comes to the host, and the gradients by them go back. **Not yet run on a card.**
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from .engine.gradients import ARGUMENTS
from .foundations import local_mean as _local_mean
from .foundations import local_mean_vjp
from .kernels import Kernel
from .kernels.constructors import make_kernel

if TYPE_CHECKING:
    import torch

__all__ = ["local_mean"]


def local_mean(
    queries: torch.Tensor,
    samples: torch.Tensor,
    values: torch.Tensor,
    kernel: Kernel | str = "gaussian",
    *,
    parameters: Sequence[torch.Tensor | None] | None = None,
    sample_weight: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    r"""Kernel-weighted mean around each query, as :func:`locbook.local_mean`, that PyTorch can differentiate.

    Parameters
    ----------
    queries : tensor, shape (m, d) or (..., m, d)
        float32 or float64, in the memory of the processor or on a card, as all other tensors of the call. More axes
        than two are a batch, as in :func:`locbook.local_mean`.
    samples : tensor, shape (n, d) or (..., n, d)
    values : tensor, shape (n,) or (n, p), in a batch (..., n, p)
    kernel : Kernel or str
    parameters : sequence of tensors, optional
        One entry for each of ``kernel.leaves()``: a tensor that takes the place of the leaf's parameter (see
        :attr:`locbook.Kernel.parameters`) and gets a gradient, or None.
    sample_weight : tensor, shape (n,), in a batch (..., n), optional
    mask : tensor of bool, shape (m, n), in a batch (..., m, n), optional

    Returns
    -------
    tensor, shape (m,) or (m, p), of a batch (..., m, p)
        Where the arguments are. float32 if queries, samples and values are, else float64. NaN, with a warning and
        without a gradient, for a query without a neighbour; other answers for it (``empty``) there are not, as they
        have no gradient.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    TypeError, ValueError
        As :func:`locbook.local_mean`; for what is no tensor, another dtype, or a tensor on another device than
        queries.
    DeviceError
        For tensors on a card, without numba-cuda.

    Notes
    -----
    It can be differentiated once. What is held fixed, and which metrics have no derivative by queries and samples, is
    said at :func:`locbook.local_mean_vjp`.

    Examples
    --------
    A bandwidth learned on the leave-one-out loss::

        import torch
        import locbook as lb
        from locbook.torch import local_mean

        torch.manual_seed(0)
        x = torch.linspace(0, 6, 60)[:, None]
        y = torch.sin(x[:, 0]) + 0.3 * torch.randn(60)
        log_bandwidth = torch.zeros((), requires_grad=True)
        optimizer = torch.optim.Adam([log_bandwidth], lr=0.1)
        for _ in range(100):
            optimizer.zero_grad()
            means = local_mean(x, x, y, lb.gaussian().hollow(), parameters=[log_bandwidth.exp()])
            loss = ((means - y) ** 2).mean()
            loss.backward()
            optimizer.step()
    """
    torch = _pytorch()
    kernel = make_kernel(kernel) if isinstance(kernel, str) else kernel
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel or a name, got {type(kernel).__name__}")
    n_leaves = sum(1 for _ in kernel.leaves())
    parameters = [None] * n_leaves if parameters is None else list(parameters)
    if len(parameters) != n_leaves:
        raise ValueError(
            f"parameters must have one entry for each of the {n_leaves} leaves, got {len(parameters)}"
        )
    given = {"queries": queries, "samples": samples, "values": values, "sample_weight": sample_weight}
    given |= {f"parameters[{k}]": parameter for k, parameter in enumerate(parameters)}
    device = getattr(queries, "device", None)
    for name, tensor in given.items():
        if tensor is not None or name in ("queries", "samples", "values"):
            _check(torch, tensor, name, (torch.float32, torch.float64), device)
    if mask is not None:
        _check(torch, mask, "mask", (torch.bool,), device)
    return _function().apply(
        kernel, mask, queries is samples, queries, samples, values, sample_weight, *parameters
    )


def _pytorch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "locbook.torch needs PyTorch, which is not installed; locbook.local_mean_vjp gives the same to NumPy"
        ) from error
    return torch


def _check(torch: Any, tensor: Any, name: str, dtypes: tuple, device: Any) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(tensor).__name__}")
    if tensor.device.type not in ("cpu", "cuda"):
        raise ValueError(
            f"{name} must be in the memory of the processor or of an NVIDIA card, got {tensor.device}"
        )
    if tensor.device != device:
        raise ValueError(f"{name} must be on {device}, where queries are, got {tensor.device}")
    if tensor.dtype not in dtypes:
        raise TypeError(f"{name} must be {' or '.join(map(str, dtypes))}, got {tensor.dtype}")


def _array(tensor: Any) -> Any:
    """A NumPy array, or of a card the tensor without its history; no copy where rows follow one another."""
    if tensor is None:
        return None
    return tensor.detach().numpy() if tensor.device.type == "cpu" else tensor.detach().contiguous()


def _current(tensor: Any) -> Any:
    """The card of a tensor is that on which kernels run and answers are made."""
    return nullcontext() if tensor.device.type == "cpu" else _pytorch().cuda.device(tensor.device)


def _arguments(kernel: Kernel, same: bool, tensors: Sequence) -> tuple[Kernel, list]:
    """The kernel with its parameters, and the arrays."""
    arrays = [_array(tensor) for tensor in tensors[:4]]
    if same:  # a hollow kernel looks whether they are
        arrays[1] = arrays[0]
    parameters = [None if t is None else _array(t.cpu()) if t.ndim else float(t) for t in tensors[4:]]
    return kernel.with_parameters(parameters), arrays


@cache
def _function() -> Any:
    """The autograd function; a class of PyTorch's, so it is made when PyTorch is there."""
    torch = _pytorch()

    class LocalMean(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, kernel: Kernel, mask: Any, same: bool, *tensors: Any) -> Any:
            changed, (*arrays, weight) = _arguments(kernel, same, tensors)
            with _current(tensors[0]):
                found, log_sum = _local_mean(
                    *arrays, changed, sample_weight=weight, mask=_array(mask), return_log_sum=True
                )
            means = torch.as_tensor(found)
            ctx.save_for_backward(means, mask, *tensors)
            ctx.settings = kernel, same, log_sum
            return means

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> tuple:
            needed = ctx.needs_input_grad[3:]
            means, mask, *tensors = ctx.saved_tensors
            slopes = LocalMeanGradient.apply(*ctx.settings, needed, means.detach(), mask, cotangent, *tensors)
            return None, None, None, *slopes

    class LocalMeanGradient(torch.autograd.Function):
        """A node of its own, so that a second derivative is an error, and not left out without a word."""

        @staticmethod
        def forward(
            ctx: Any,  # noqa: ARG004
            kernel: Kernel,
            same: bool,
            log_sum: Any,
            needed: tuple,
            means: Any,
            mask: Any,
            cotangent: Any,
            *tensors: Any,
        ) -> tuple:
            wrt = [name for name, need in zip(ARGUMENTS[:4], needed[:4], strict=True) if need]
            wrt += ["kernel"] if any(needed[4:]) else []
            kernel, (*arrays, weight) = _arguments(kernel, same, tensors)
            with _current(means):
                found = local_mean_vjp(
                    *(_array(cotangent), *arrays, kernel),
                    sample_weight=weight,
                    mask=_array(mask),
                    wrt=tuple(wrt),
                    forward=(_array(means), log_sum),
                )
            leaves = (None,) * len(tensors[4:]) if found.kernel is None else found.kernel
            return tuple(
                torch.as_tensor(slope, dtype=tensor.dtype, device=tensor.device) if need else None
                for slope, tensor, need in zip((*found[:4], *leaves), tensors, needed, strict=True)
            )

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> None:  # noqa: ARG004
            raise RuntimeError("locbook.torch.local_mean can be differentiated once, not twice")

    return LocalMean
