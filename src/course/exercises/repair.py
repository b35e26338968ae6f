"""Find one edit that makes the learner's code right.

We tell the learner the place and the kind of the mistake, but never the edit. This is not a guess,
because we run each edited function. We report a kind of mistake only if no edit of another kind
repairs the function, too. If edits of several kinds do, and all of them are in one short
expression, we report the expression and not the kind of mistake.
"""

import ast
import builtins
import contextlib
import copy
import functools
import inspect
import io
import itertools
import textwrap
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from course.exercises.clock import PATIENCE, Late, limited

WORDS = tomllib.loads((Path(__file__).parent / "repairs.toml").read_text())
# functions that are often confused with each other
LIKE = [row.split() for row in WORDS["like"].splitlines()]
OPERATORS = {
    "Add": "Sub Mult",
    "Sub": "Add",
    "Mult": "Div Add MatMult",
    "Div": "Mult FloorDiv",
    "FloorDiv": "Div",
    "Mod": "FloorDiv",
    "Pow": "Mult",
    "MatMult": "Mult",
    "BitAnd": "BitOr",
    "BitOr": "BitAnd",
}
COMPARISONS = {
    "Lt": "LtE Gt GtE",
    "LtE": "Lt Gt GtE",
    "Gt": "GtE Lt LtE",
    "GtE": "Gt Lt LtE",
    "Eq": "NotEq",
    "NotEq": "Eq",
}
SAME = [
    row.split() for row in WORDS["same"].splitlines()
]  # kinds of edits that describe the same mistake in nested places
MAKES = (
    "eye",
    "ones",
    "zeros",
    "arange",
    "range",
    "tensor",
)  # parts that we do not replace by what they contain
PLAIN = (ast.Add, ast.Mult)  # the order of the operands does not matter


class Edit(NamedTuple):
    """Hold one edit of the syntax tree: its kind, its place, and how to apply and undo it.

    An attribute of a node gets a new value.
    """

    kind: str
    at: ast.AST
    owner: ast.AST
    field: str
    new: Any


def _edits(function: ast.FunctionDef | ast.Lambda) -> Iterator[Edit]:
    """Yield all edits of a function's body, the simplest first."""
    names = sorted(
        {
            n.id
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
    )
    names += [argument.arg for argument in function.args.args]
    body = function.body if isinstance(function.body, list) else [function.body]
    nodes = [(owner, field, node) for top in body for owner, field, node in _places(top)]
    if isinstance(function, ast.Lambda):
        nodes.append((function, "body", function.body))
    counted = _counted(function)
    grows = [
        n
        for n in ast.walk(function)
        if isinstance(getattr(n, "op", 0), ast.Pow) or _called(n) in ("factorial", "comb")
    ]
    huge = {
        id(part) for n in grows for part in ast.walk(n)
    }  # a power of two large integers may never be computed
    for owner, field, node in nodes:
        for kind, new in _expressions(node, names, id(node) in counted):
            if kind in ("name", "missing") and id(node) in huge:
                continue
            yield Edit(kind, node, owner, field, new)
    for owner in ast.walk(function):
        if isinstance(owner, ast.For):
            turned = ast.Call(ast.Name("list", ast.Load()), [owner.iter], [])
            yield Edit(
                "direction",
                owner.iter,
                owner,
                "iter",
                ast.Call(ast.Name("reversed", ast.Load()), [turned], []),
            )
        if isinstance(getattr(owner, "value", None), ast.expr) and isinstance(owner, ast.stmt):
            yield from (
                Edit("exchange", owner.value, owner, "value", new)
                for new in _exchanged(owner.value, names)
            )
        for field in ("body", "orelse"):
            lines = getattr(owner, field, None)
            if isinstance(lines, list):
                for kind, at, new in _lines(lines):
                    yield Edit(kind, at, owner, field, new)


def _places(top: ast.AST) -> Iterator[tuple[Any, Any, ast.AST]]:
    """Yield each expression together with the place that contains it.

    A place is a node and a field, or a list and an index.
    """
    for owner in ast.walk(top):
        for field, value in ast.iter_fields(owner):
            if isinstance(value, list):
                places = [(value, k, node) for k, node in enumerate(value)]
            else:
                places = [(owner, field, value)]
            for holder, at, node in places:
                if isinstance(node, ast.expr) and isinstance(
                    getattr(node, "ctx", ast.Load()), ast.Load
                ):
                    yield holder, at, node


def _exchanged(value: ast.expr, names: list[str]) -> Iterator[ast.expr]:
    """Yield variants of an expression with two of its names swapped or with a similar function.

    A similar function is one that is often confused with the function in the expression.
    """
    used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} & set(names)
    called = {_called(node) for node in ast.walk(value)}
    for first, second in itertools.chain(
        itertools.combinations(sorted(used), 2),
        (pair for row in LIKE for pair in itertools.combinations(sorted(called & set(row)), 2)),
    ):
        new, turned = copy.deepcopy(value), {first: second, second: first}
        for node in ast.walk(new):
            for field in {"id", "attr"} & set(node._fields):
                setattr(node, field, turned.get(getattr(node, field), getattr(node, field)))
        yield new


def _named(kind: str) -> ast.operator:
    return getattr(ast, kind)()


def _number(value: float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _whole(node: ast.AST) -> int | None:
    """Return the integer that a node of the syntax tree contains, or None."""
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and _whole(node.operand) is not None
    ):
        return -_whole(node.operand)
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _called(node: ast.AST) -> str:
    """Return the name of the function that a node calls."""
    return (
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        if isinstance(node, ast.Call)
        else ""
    )


def _counted(function: ast.AST) -> set[int]:
    """Collect the nodes of the tree in which a mistake by one is likely.

    These are expressions for positions or for numbers of iterations (ends, indices, results).
    """
    counted = []
    for node in ast.walk(function):
        match node:
            case ast.Slice(lower, upper):
                counted += [lower, upper]
            case ast.Subscript(_, place) | ast.Return(place) | ast.Compare(_, _, [place]):
                counted += place.elts if isinstance(place, ast.Tuple) else [place]
            case ast.Call(_, given) if _called(node) in WORDS["counts"].split():
                counted += given
    return {id(node) for node in counted if node is not None}


def _expressions(node: ast.expr, names: list[str], counted: bool) -> Iterator[tuple[str, ast.expr]]:
    """Yield possible replacements of an expression, with the kind of mistake that each repairs."""
    value = _whole(node)
    if value is not None:
        for number in dict.fromkeys(
            (value - 1, value + 1, -value, 2 * value, value // 2, 0, 1, -1)
        ):
            if number != value:
                yield "number", _number(number)
    match node:
        case ast.BinOp(left, op, right):
            for op_name in OPERATORS.get(type(op).__name__, "").split():
                yield "operator", ast.BinOp(left, _named(op_name), right)
            if not isinstance(op, PLAIN):
                yield "order", ast.BinOp(right, op, left)
            floats = any(
                isinstance(part, ast.Div) for part in ast.walk(right)
            )  # powers of large integers may never be computed
            if isinstance(op, ast.Mult) and (floats or 1 < (_whole(right) or 0) < 5):
                yield "operator", ast.BinOp(left, ast.Pow(), right)
            yield from (("brackets", new) for new in _bracketed(left, op, right))
            for side, joined in (
                (left, lambda x: (x, op, right)),
                (right, lambda x: (left, op, x)),
            ):
                if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute):
                    method = ast.Attribute(
                        ast.BinOp(*joined(side.func.value)), side.func.attr, ast.Load()
                    )
                    yield "brackets", ast.Call(method, side.args, side.keywords)
                if isinstance(side, ast.Call) and len(side.args) == 1:
                    yield (
                        "brackets",
                        ast.Call(side.func, [ast.BinOp(*joined(side.args[0]))], side.keywords),
                    )
                if isinstance(side, ast.UnaryOp):
                    yield "brackets", ast.UnaryOp(side.op, ast.BinOp(*joined(side.operand)))
            yield "much", left
            yield "much", right
        case ast.BoolOp(op, values):
            yield "operator", ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
        case ast.UnaryOp(ast.USub(), operand):
            yield "sign", operand
        case ast.UnaryOp(_, operand):
            yield "not", operand
        case ast.Compare(left, [op], [right]):
            for op_name in COMPARISONS.get(type(op).__name__, "").split():
                yield "comparison", ast.Compare(left, [_named(op_name)], [right])
        case ast.IfExp(test, body, orelse):
            yield "branches", ast.IfExp(test, orelse, body)
            yield "much", body
        case ast.Slice(lower, upper, step):
            yield from (
                ("slice", ast.Slice(*ends)) for ends in ((None, upper, step), (lower, None, step))
            )
        case ast.Tuple([first, second, *rest]):
            yield "order", ast.Tuple([second, first, *rest], ast.Load())
        case ast.Name(name):
            yield from (
                ("name", ast.Name(candidate, ast.Load()))
                for candidate in names
                if candidate != name
            )
        case ast.Call():
            yield from _calls(node)
    if counted and not isinstance(node, ast.Slice | ast.Constant | ast.Starred | ast.Tuple):
        for sign in (ast.Add(), ast.Sub()):
            yield "one", ast.BinOp(node, sign, ast.Constant(1))
    if isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.Name):
        yield "minus", ast.UnaryOp(ast.USub(), node)
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield from (
            ("number", ast.BinOp(node, ast.Pow(), ast.Constant(power))) for power in (2, 0.5)
        )
    if isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.Name):
        for op, by in ((ast.Pow(), 2), (ast.Pow(), 0.5), (ast.Mult(), 2), (ast.Div(), 2)):
            yield "missing", ast.BinOp(node, op, ast.Constant(by))
        for op, name in itertools.product((ast.Mult(), ast.Div()), names):
            yield "missing", ast.BinOp(node, op, ast.Name(name, ast.Load()))
    if isinstance(node, ast.BinOp | ast.Call | ast.Subscript):
        for method in ("abs", "T", "double"):
            attribute = ast.Attribute(node, method, ast.Load())
            yield "missing", attribute if method == "T" else ast.Call(attribute, [], [])


def _bracketed(left: ast.expr, op: ast.operator, right: ast.expr) -> Iterator[ast.expr]:
    """Yield the same operations with other brackets.

    For a - (b + c), for example, this gives (a - b) + c.
    """
    if isinstance(left, ast.BinOp):
        for inner in (ast.BinOp(left.right, op, right), *_bracketed(left.right, op, right)):
            yield ast.BinOp(left.left, left.op, inner)
    if isinstance(right, ast.BinOp):
        for inner in (ast.BinOp(left, op, right.left), *_bracketed(left, op, right.left)):
            yield ast.BinOp(inner, right.op, right.right)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    func, given, named = node.func, node.args, node.keywords
    match node:
        case ast.Call(ast.Attribute(ast.Call(ast.Attribute(x, one), first, more), other)):
            inner = ast.Call(ast.Attribute(x, other, ast.Load()), given, named)
            yield "order", ast.Call(ast.Attribute(inner, one, ast.Load()), first, more)
        case ast.Call(ast.Attribute(ast.BinOp(left, op, right), name)):
            for side, new in ((left, lambda x: (x, op, right)), (right, lambda x: (left, op, x))):
                yield (
                    "brackets",
                    ast.BinOp(*new(ast.Call(ast.Attribute(side, name, ast.Load()), given, named))),
                )
        case ast.Call(_, [ast.BinOp(left, op, right)]):
            for side, new in ((left, lambda x: (x, op, right)), (right, lambda x: (left, op, x))):
                yield "brackets", ast.BinOp(*new(ast.Call(func, [side], named)))
    if isinstance(func, ast.Attribute) and _called(node) not in MAKES:
        yield "call", func.value
    if given:
        if _called(node) not in MAKES:
            yield "call", given[0]
        yield "argument", ast.Call(func, given[:-1], named)
    for k in range(len(given) - 1):
        yield "order", ast.Call(func, [*given[:k], given[k + 1], given[k], *given[k + 2 :]], named)
    for k, keyword in enumerate(named):
        yield "argument", ast.Call(func, given, named[:k] + named[k + 1 :])
        if keyword.arg in ("min", "max"):
            opposite = ast.keyword("max" if keyword.arg == "min" else "min", keyword.value)
            yield "function", ast.Call(func, given, [*named[:k], opposite, *named[k + 1 :]])
    called = _called(node)
    for substitute in (word for row in LIKE if called in row for word in row if word != called):
        if isinstance(func, ast.Attribute):
            yield (
                "function",
                ast.Call(ast.Attribute(func.value, substitute, ast.Load()), given, named),
            )
        if hasattr(builtins, substitute):
            yield "function", ast.Call(ast.Name(substitute, ast.Load()), given, named)
    if called in WORDS["reduces"].split():
        keep = (
            []
            if any(keyword.arg == "keepdim" for keyword in named)
            else [ast.keyword("keepdim", ast.Constant(True))]
        )
        for axis in [given] if given else [[_number(-1)], [_number(0)]]:
            for more in ([], keep):
                if axis is not given or more:
                    yield "axis", ast.Call(func, axis, named + more)


def _lines(lines: list[ast.stmt]) -> Iterator[tuple[str, ast.AST, list]]:
    for k, line in enumerate(lines):
        before, after = lines[:k], lines[k + 1 :]
        if len(lines) > 1 and not isinstance(line, ast.Return):
            yield "line", line, before + after
        if (
            isinstance(line, ast.For | ast.While)
            and isinstance(line.body[-1], ast.Return)
            and len(line.body) > 1
        ):
            inner = type(line)(**{**dict(ast.iter_fields(line)), "body": line.body[:-1]})
            yield "indentation", line.body[-1], [*before, inner, line.body[-1]]
        if (
            isinstance(line, ast.Assign)
            and isinstance(line.targets[0], ast.Tuple)
            and len(line.targets[0].elts) == 2
        ):
            turned = ast.Tuple(line.targets[0].elts[::-1], ast.Store())
            yield "order", line, [*before, ast.Assign([turned], line.value), *after]
        if (
            isinstance(line, ast.Assign)
            and len(line.targets) == 1
            and isinstance(line.targets[0], ast.Name)
        ):
            yield (
                "assignment",
                line,
                [*before, ast.AugAssign(line.targets[0], ast.Add(), line.value), *after],
            )
        if isinstance(line, ast.AugAssign):
            for sign in OPERATORS.get(type(line.op).__name__, "").split():
                yield (
                    "operator",
                    line,
                    [*before, ast.AugAssign(line.target, _named(sign), line.value), *after],
                )
        if (
            after
            and isinstance(line, ast.Assign | ast.AugAssign)
            and isinstance(after[0], ast.Assign | ast.AugAssign)
        ):
            yield "sequence", line, [*before, after[0], line, *after[1:]]


def _parsed(answer: Callable) -> tuple[str, ast.Module, Any]:
    """Return the learner's source code, its syntax tree, and the function in the tree.

    Raises:
        OSError, SyntaxError, TypeError, StopIteration: if the source of the function is not
            available, or if it cannot be parsed without the code around it.
    """
    source = textwrap.dedent(inspect.getsource(answer))
    tree = ast.parse(source)
    kind = ast.Lambda if answer.__name__ == "<lambda>" else ast.FunctionDef
    functions = [node for node in ast.walk(tree) if isinstance(node, kind)]
    if kind is ast.Lambda and len(functions) != 1:
        raise TypeError("this line has several functions, so the right one cannot be found")
    return source, tree, functions[0]


def repaired(
    answer: Callable, right: Callable[[Callable], bool], longest: float, seconds: float
) -> str:
    """Find the mistake in the learner's function, if one edit makes the function right.

    The result is a sentence for the learner, or "" if no edit or no unique edit is found.

    Args:
        right: a function that says whether an edited function is right, on the cases of the check
            and on further inputs.
        longest: the seconds allowed for one edit. All cases together must need less. There is a
            limit because an edit may make a loop endless.
        seconds: the seconds allowed for the whole search. If the search does not finish, the result
            is "", because an edit at another place might repair the function as well.
    """
    answer = inspect.unwrap(answer)
    try:
        source, tree, function = _parsed(answer)
    except (OSError, SyntaxError, TypeError, IndexError):
        return ""
    if isinstance(function, ast.Lambda):
        tree = ast.Module([ast.Assign([ast.Name("edited", ast.Store())], function)], [])
    name = "edited" if isinstance(function, ast.Lambda) else function.name
    closed = inspect.getclosurevars(answer).nonlocals
    began, repairs = time.thread_time(), []
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for edit in _edits(function):
            if time.thread_time() - began > seconds:
                return ""
            old = (
                edit.owner[edit.field]
                if isinstance(edit.owner, list)
                else getattr(edit.owner, edit.field)
            )
            put = (
                edit.owner.__setitem__
                if isinstance(edit.owner, list)
                else functools.partial(setattr, edit.owner)
            )
            put(edit.field, edit.new)
            limit = None
            try:
                code = compile(ast.fix_missing_locations(tree), "<edit>", "exec")
                names = {**answer.__globals__, **closed}
                with limited(longest, PATIENCE) as limit:
                    exec(code, names)
                    if right(names[name]):
                        repairs.append(edit)
            except Exception:
                pass
            except Late as late:
                if late.limit is not limit:  # the time for the whole search is over
                    raise
            finally:
                put(edit.field, old)
    return _told(source, function, repairs)


def _told(source: str, function: Any, edits: list[Edit]) -> str:
    """Return the sentence that tells a learner where the edits are and of which kind.

    If they are too far apart to name one place, the result is "".
    """
    edits = [edit for edit in edits if not any(_says_the_same(rival, edit) for rival in edits)]
    if not edits:
        return ""
    kinds = {edit.kind for edit in edits}
    at = max((edit.at for edit in edits), key=_span_length)
    inside = all(_holds(at, edit.at) for edit in edits)
    if not inside:
        around = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.expr) and node is not function
        ]
        around = [node for node in around if all(_holds(node, edit.at) for edit in edits)]
        if not around:
            return ""
        at = min(around, key=_span_length)
    text = " ".join((ast.get_source_segment(source, at) or "").split())
    whole = " ".join((ast.get_source_segment(source, function) or "").split())
    kind = kinds.pop() if inside and len(kinds) == 1 else "several"
    if not text or isinstance(at, ast.For | ast.While | ast.FunctionDef):
        return ""
    sentence = WORDS["kinds"][kind]
    if kind == "several":
        named = [WORDS["which"][kind] for kind in sorted(kinds) if kind in WORDS["which"]]
        which = len(named) == len(kinds) == 2
        if len(text) > 90 or (not which and len(text) > 0.6 * (len(whole) - whole.find(":"))):
            return ""
        sentence = WORDS["either"].format(*named) if which else sentence
    line = source.splitlines()[at.lineno - 1].strip()
    where = (
        f" It is in your line “{line[:80]}{'…' * (len(line) > 80)}”."
        if len(text) < 8 and len(line) > len(text)
        else ""
    )
    text = f"{text[:80]}…" if len(text) > 80 else text
    return f"{sentence.format(text)}{where} {WORDS['known']}"


def _says_the_same(one: Edit, other: Edit) -> bool:
    """Return whether the kind of one edit also describes the other edit's mistake, and better.

    Examples of such kinds are a wrong sign and an error by one.
    """
    nested = _holds(one.at, other.at) or _holds(other.at, one.at)
    return nested and any(
        {one.kind, other.kind} <= set(row) and row.index(one.kind) < row.index(other.kind)
        for row in SAME
    )


def _span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _span_length(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno - node.lineno, node.end_col_offset - node.col_offset


def _holds(one: ast.AST, other: ast.AST) -> bool:
    return _span(one)[0] <= _span(other)[0] and _span(other)[1] <= _span(one)[1]
