"""Calls that are carried out at once in this process: what is tested here needs no Ray."""

from pser.cluster.calls import Lost


class Ref:
    """An answer, which is gone with whoever gave it, if it was not fetched before."""

    def __init__(self, handle, value=None, error=None):
        self.handle, self.value, self.error = handle, value, error


class Handle:
    """An object whose methods are called as those of a Ray actor."""

    def __init__(self, held):
        self.held, self.alive = held, True

    def __getattr__(self, name):
        return Method(self, name)


class Method:
    def __init__(self, handle, name, returns=1):
        self.handle, self.name, self.returns = handle, name, returns

    def options(self, num_returns):
        return Method(self.handle, self.name, num_returns)

    def remote(self, *arguments):
        if not self.handle.alive:
            refs = [Ref(self.handle) for _ in range(self.returns)]
        else:
            try:
                values = getattr(self.handle.held, self.name)(*(value_of(one) for one in arguments))
                values = values if self.returns > 1 else (values,)
                refs = [Ref(self.handle, value) for value in values]
            except Exception as error:
                refs = [Ref(self.handle, error=error) for _ in range(self.returns)]
        return refs if self.returns > 1 else refs[0]


def value_of(argument):
    return argument.value if isinstance(argument, Ref) else argument


class DirectCalls:
    """Takes the place of `pser.cluster.calls.Calls`."""

    def __init__(self):
        self.handles = []

    def start(self, role, *arguments):
        self.handles.append(Handle(role(*arguments)))
        return self.handles[-1]

    def end(self, handle):
        handle.alive = False

    def put(self, value):
        return Ref(Handle(None), value)

    def first(self, refs, seconds):
        return refs[0]

    def get(self, ref):
        if not ref.handle.alive:
            raise Lost("killed")
        if ref.error is not None:
            raise ref.error
        return ref.value

    def kill(self, role):
        """End the newest process that holds an object of this class."""
        victim = next(one for one in reversed(self.handles) if isinstance(one.held, role) and one.alive)
        victim.alive = False
