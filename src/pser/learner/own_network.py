"""A network of one's own: a class or factory, named by its module or given from Python."""

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from pser.errors import PserError

NetworkFactory = Callable[[tuple[int, ...], int], nn.Module]
"""(observation_shape, num_outputs) → a module from (batch, *observation_shape) to (batch, num_outputs)."""


class AsFloats(nn.Module):
    """Hands observations to a network as float32, whatever they are stored as; frames stay 0..255."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: Tensor) -> Tensor:
        """The network's outputs."""
        outputs: Tensor = self.network(as_floats(observation))
        return outputs


def as_floats(observation: Tensor) -> Tensor:
    """The observation as float32; truth values by way of bytes, which PyTorch converts several times faster."""
    if observation.dtype == torch.bool:
        observation = observation.view(torch.uint8)
    return observation.to(torch.float32)


def find_factory(name: str) -> NetworkFactory:
    """The class that `package.module:Class` names."""
    module, _, attribute = name.partition(":")
    try:
        with _here():
            found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise PserError(f"cannot import the network {name} ({error}): see that Python finds it") from None
    except AttributeError:
        raise PserError(f"the module {module} has no {attribute!r}: name a class of it") from None
    except Exception as error:
        raise PserError(f"importing the network {name} failed ({_said(error)}): repair it") from None
    if not callable(found):
        raise PserError(f"the network {name} must be a class or function, got {found!r}: name another")
    factory: NetworkFactory = found
    return factory


@contextlib.contextmanager
def _here() -> Iterator[None]:
    """Let modules of the current folder be found, as `python -m` does."""
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        sys.path.pop(0)


def make_own(factory: NetworkFactory, shape: tuple[int, ...], num_outputs: int) -> nn.Module:
    """A network from its factory, tried on two observations: what does not fit is refused here."""
    name = getattr(factory, "__qualname__", str(factory))
    try:
        network = factory(shape, num_outputs)
    except Exception as error:
        raise PserError(
            f"the network {name} must be made from (observation_shape, num_outputs), "
            f"but {name}({shape}, {num_outputs}) failed ({_said(error)}): repair it"
        ) from None
    if not isinstance(network, nn.Module):
        raise PserError(
            f"the network {name} must be an nn.Module, got {type(network).__name__}: derive from it"
        )
    for parameter_name, parameter in network.named_parameters():
        if parameter.dtype != torch.float32:
            raise PserError(
                f"a network's parameters must be float32, {name} has {parameter_name} of {parameter.dtype}: "
                "leave the dtype out"
            )
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise PserError(f"the network {name} has no parameters that could learn: give it a layer")
    try:
        with torch.no_grad():
            outputs = network(torch.zeros((2, *shape)))
    except Exception as error:
        raise PserError(
            f"the network {name} must take observations of shape (batch, {', '.join(map(str, shape))}), "
            f"but it failed ({_said(error)}): repair it"
        ) from None
    got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if got != (2, num_outputs):
        raise PserError(
            f"the network {name} must give (batch, num_outputs) = (2, {num_outputs}) for two observations, "
            f"got {got}: make its last layer num_outputs wide"
        )
    return network


def _said(error: Exception) -> str:
    """The first line of an error."""
    return (str(error).splitlines() or [type(error).__name__])[0]
