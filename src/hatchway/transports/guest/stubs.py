"""What a stub's text says, read only when the action asks: docstring and signature."""


def docstring(stub):
    """The docstring in the stub, or None."""
    import ast

    function = _function(stub)
    return ast.get_docstring(function) if function else None


def signature(stub):
    """The signature in the stub, annotations as text; any arguments when there is no stub."""
    import inspect

    function = _function(stub)
    if function is None:
        return inspect.signature(lambda *args, **kwargs: None)
    return inspect.Signature(list(_parameters(function.args)), return_annotation=_annotation(function.returns))


def title(name, stub):
    """`name(a: int, b: str = 'x') -> int`."""
    import inspect

    shown = signature(stub)
    parameters = [
        p.replace(annotation=_Text(p.annotation)) if p.annotation is not p.empty else p
        for p in shown.parameters.values()
    ]
    back = shown.return_annotation
    back = back if back is inspect.Signature.empty else _Text(back)
    return name + str(inspect.Signature(parameters, return_annotation=back))


class _Text(str):
    """An annotation that prints without quotes."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


def _function(stub):
    import ast

    try:
        nodes = ast.parse(stub).body
    except (SyntaxError, ValueError):
        return None
    return next((n for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))), None)


def _parameters(args):
    import inspect

    positional = args.posonlyargs + args.args
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    for index, arg in enumerate(positional):
        kind = "POSITIONAL_ONLY" if index < len(args.posonlyargs) else "POSITIONAL_OR_KEYWORD"
        yield _parameter(inspect, arg, kind, defaults[index])
    if args.vararg:
        yield _parameter(inspect, args.vararg, "VAR_POSITIONAL", None)
    for index, arg in enumerate(args.kwonlyargs):
        yield _parameter(inspect, arg, "KEYWORD_ONLY", args.kw_defaults[index])
    if args.kwarg:
        yield _parameter(inspect, args.kwarg, "VAR_KEYWORD", None)


def _parameter(inspect, arg, kind, default):
    parameter = inspect.Parameter
    value = parameter.empty if default is None else _literal(default)
    annotation = parameter.empty if arg.annotation is None else _unparsed(arg.annotation)
    return parameter(arg.arg, getattr(parameter, kind), default=value, annotation=annotation)


def _annotation(node):
    import inspect

    return inspect.Signature.empty if node is None else _unparsed(node)


def _unparsed(node):
    import ast

    return ast.unparse(node)


def _literal(node):
    import ast

    try:
        return ast.literal_eval(node)
    except ValueError:
        return _Text(ast.unparse(node))
