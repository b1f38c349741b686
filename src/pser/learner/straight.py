"""Modules of one's own that are, in truth, one layer after the other.

PyTorch's tracer says what a `forward` calls. It runs the Python code once, and cannot see what that would do another
time: whether it branches, counts, or reads a number that changes. So the code is read first, and traced only if all it
can do is to call layers and the few functions known here, and to go through a list of layers.
"""

import contextlib
import dis
import inspect
import operator
from types import FunctionType
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from pser.learner.noisy import NoisyLinear

LAYERS = (nn.Linear, nn.Conv2d, nn.ReLU, nn.Flatten, NoisyLinear)
CONTAINERS = (nn.Sequential, nn.ModuleList)
FUNCTIONS = (torch.relu, functional.relu, torch.flatten)
METHODS = ("relu", "flatten")
NAMESPACES = (torch, nn, functional)
_NAMES = """
    RESUME CACHE EXTENDED_ARG NOP COPY_FREE_VARS PUSH_NULL PRECALL KW_NAMES CALL CALL_KW RETURN_VALUE
    LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
    STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST LOAD_CONST LOAD_SMALL_INT
    LOAD_GLOBAL LOAD_DEREF LOAD_ATTR LOAD_METHOD BINARY_OP BINARY_SUBSCR
    GET_ITER FOR_ITER JUMP_BACKWARD END_FOR POP_ITER POP_TOP
"""
INSTRUCTIONS = frozenset(_NAMES.split())
"""What CPython 3.11 to 3.14 compile such code to; no jump among them but a loop's, and nothing is kept."""


class Divided(nn.Module):
    """x divided by a number that stands in the code."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return type(m) in LAYERS


def straight_line(network: nn.Module) -> list[nn.Module] | None:
    """The layers that the network calls, in their order, or None unless that is certainly all it ever does."""
    if not all(type(module) in LAYERS + CONTAINERS or _is_plain(module) for module in network.modules()):
        return None
    graph = None
    with contextlib.suppress(Exception):  # whatever the tracer does not understand
        graph = _Tracer().trace(network)
    layers = None if graph is None else _layers(graph, dict(network.named_modules()))
    used = {id(parameter) for layer in layers or () for parameter in layer.parameters()}
    return layers if used == {id(parameter) for parameter in network.parameters()} else None


def _is_plain(module: nn.Module) -> bool:
    """Whether a module of somebody's own does nothing but what can be traced."""
    kind, forward = type(module), type(module).forward
    if (kind.__call__, kind.__getattr__) != (nn.Module.__call__, nn.Module.__getattr__):
        return False
    if kind.__getattribute__ is not object.__getattribute__ or type(forward) is not FunctionType:
        return False
    if any(hasattr(kind, name) for name in ("__iter__", "__getitem__", "__truediv__", "__rtruediv__")):
        return False
    code = forward.__code__
    takes_more = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or forward.__kwdefaults__
    if code.co_argcount != 2 or forward.__defaults__ or takes_more or code.co_exceptiontable:
        return False
    outside = inspect.getclosurevars(forward)
    values = {**outside.globals, **outside.nonlocals}
    return all(_is_known(step, module, values) for step in dis.get_instructions(code))


def _is_known(step: dis.Instruction, module: nn.Module, values: dict[str, Any]) -> bool:
    if step.opname not in INSTRUCTIONS:
        return False
    if step.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
        return any(values.get(step.argval) is known for known in NAMESPACES + FUNCTIONS)
    if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        hidden = step.argval in vars(module) or hasattr(type(module), step.argval)
        return not hidden and step.argval in (*module._modules, *METHODS, "nn", "functional")
    return step.opname != "BINARY_OP" or step.argrepr in ("/", "[]")


def _layers(graph: fx.Graph, modules: dict[str, nn.Module]) -> list[nn.Module] | None:
    """The graph's calls as layers, if each takes what the one before gave, and nothing else."""
    first, *calls, last = graph.nodes
    layers: list[nn.Module] = []
    before = first
    for call in calls:
        layer = _layer(call, modules) if call.args[:1] == (before,) else None
        if layer is None or (layer in layers and list(layer.parameters())):
            return None  # a layer called twice has two gradients to add
        layers.append(layer)
        before = call
    return layers if last.op == "output" and last.args == (before,) else None


def _layer(call: fx.Node, modules: dict[str, nn.Module]) -> nn.Module | None:
    rest, named = call.args[1:], dict(call.kwargs)
    if call.op == "call_module":
        return None if rest or named else modules[str(call.target)]
    if call.op not in ("call_function", "call_method"):
        return None
    if call.target in (torch.relu, functional.relu, "relu"):
        return nn.ReLU() if not rest and named.keys() <= {"inplace"} else None
    if call.target in (torch.flatten, "flatten"):
        return nn.Flatten() if (rest, named) in (((1,), {}), ((1, -1), {}), ((), {"start_dim": 1})) else None
    if call.target is operator.truediv and len(rest) == 1 and type(rest[0]) in (int, float) and rest[0]:
        return Divided(float(rest[0]))  # type: ignore[arg-type]
    return None
