"""One action: its source compiled, run, and the value of its last expression."""

import ast
import sys

FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
LARGE = 1_000_000  # characters; shorter source does not fill the memory of a parser
COROUTINE = 0x80  # inspect.CO_COROUTINE: the code has a top-level await


class Action:
    """Compiled source: the statements, and apart from them the last one if it is an expression.

    `awaited` is what `look` found in the tree of an action that may await.
    """

    def __init__(self, source, filename, look=None):
        remember_source(source, filename)
        tree = _parsed(source, filename)
        self.awaited = look(tree) if look is not None and "await" in source else None
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self._steps = []
        if tree.body or last is None:
            self._steps.append(compile(tree, filename, "exec", FLAGS, dont_inherit=True))
        if last is not None:
            flags = FLAGS | (self._steps[0].co_flags & _FUTURES if self._steps else 0)
            self._steps.append(compile(ast.Expression(last.value), filename, "eval", flags, dont_inherit=True))

    def run(self, namespace, run_coroutine):
        """The value of the last expression. An action that awaits at top level is run as a coroutine, as a whole."""
        if any(step.co_flags & COROUTINE for step in self._steps):
            return run_coroutine(self._run_async(namespace))
        value = None
        for step in self._steps:
            value = eval(step, namespace)
        return value

    async def _run_async(self, namespace):
        value = None
        for step in self._steps:
            value = eval(step, namespace)
            if step.co_flags & COROUTINE:
                value = await value
        return value


def action(source, filename, look=None):
    """An action in plain Python."""
    return Action(source, filename, look)


def _parsed(source, filename):
    try:
        return compile(source, filename, "exec", FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)
    except MemoryError:
        if len(source) > LARGE:
            raise
        raise RecursionError from None  # the parser's way of saying that its stack is full


def _future_flags():
    import __future__

    return sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names} - {0, 0x10})


_FUTURES = _future_flags()


def remember_source(source, filename):
    """Let tracebacks, `inspect.getsource` and `pdb` find the action's lines."""
    import linecache

    text = source.replace("\r\n", "\n").replace("\r", "\n")  # `splitlines` sees more ends of lines than Python does
    linecache.cache[filename] = (len(source), None, [line + "\n" for line in text.split("\n")], filename)


def main_namespace():
    """The globals of a fresh `__main__` module."""
    import builtins
    import types

    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    return vars(module)
