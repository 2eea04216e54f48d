"""What of the product does no product code reach? Functions, methods, classes and constants, by reading the source.

A definition is reached where something that is reached names it; what a module does while it is imported is reached.
Names are followed through imports. A method is reached by its name, whatever object it is called on, so one that shares
its name with another is believed to be used.
"""

import ast
import builtins
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, str]  # a module, and a name within it; the empty name stands for the module's own statements

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Decorators that hand over what they decorate to somebody who calls it.
_HAND_OVER = (
    "register",
    "validator",
    "serializer",
    "workflow.run",
    "workflow.signal",
    "workflow.query",
    "workflow.update",
)

# Bases from elsewhere that call no method of ours.
_SILENT_BASES = {"Protocol", "Generic", "NamedTuple", "Enum", "StrEnum", "IntEnum", "BaseModel", "TypedDict"}


@dataclass(slots=True)
class _Definition:
    """A definition and what it names."""

    node: ast.AST
    parent: Key
    names: set[Key] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)


class _Module:
    """The definitions of one module."""

    def __init__(self, name: str, tree: ast.Module, modules: Iterable[str]) -> None:
        self.name, self._modules = name, modules
        self.imported = dict(_imported(tree))
        self.own = {each for node in tree.body for each in _defined(node)}
        whole = (name, "")
        self.definitions = {whole: _Definition(tree, whole)}
        for node in tree.body:
            self._enter(node, whole, frozenset())

    def _enter(self, node: ast.AST, inside: Key, local: frozenset[str]) -> None:
        """`local`: the names that mean something of the function that they stand in."""
        outer = self.definitions[inside].node
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                return  # to list a name is not to use it
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) and not isinstance(outer, _FUNCTIONS):
            self._define(node, inside, local)
        elif inside[1] == "" and isinstance(node, (ast.Assign, ast.AnnAssign)) and (names := [*_targets(node)]):
            for name in names:
                self.definitions.setdefault((self.name, name), _Definition(node, inside))
                for child in _children(node):
                    self._enter(child, (self.name, name), local)
        else:
            self._note(node, self.definitions[inside], local)
            for child in _children(node):
                self._enter(child, inside, local)

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, inside: Key, local: frozenset[str]
    ) -> None:
        key = (self.name, f"{inside[1]}.{node.name}".removeprefix("."))
        self.definitions.setdefault(key, _Definition(node, inside))
        within = local | _locals(node) if isinstance(node, _FUNCTIONS) else local
        for child in _children(node):
            if child in node.decorator_list:
                self._enter(child, inside, local)
            else:
                self._enter(child, key, within)

    def _note(self, node: ast.AST, uses: _Definition, local: frozenset[str]) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local:
            self._note_name(node.id, uses)
        elif isinstance(node, ast.Attribute):
            uses.attributes.add(node.attr)
            if (module := self._module(node.value)) is not None:
                uses.names.add((module, node.attr))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            uses.attributes.add(node.value)  # a step, a signal, what getattr is asked for
            self._note_name(node.value, uses)  # an annotation as text

    def _note_name(self, name: str, uses: _Definition) -> None:
        if name in self.imported:
            uses.names.add(self.imported[name])
        elif name in self.own:
            uses.names.add((self.name, name))

    def _module(self, node: ast.AST) -> str | None:
        """The module that an expression means, if it means one."""
        if isinstance(node, ast.Name):
            name = ".".join(filter(None, self.imported.get(node.id, (node.id, ""))))
        elif isinstance(node, ast.Attribute) and (parent := self._module(node.value)) is not None:
            name = f"{parent}.{node.attr}"
        else:
            return None
        return name if name in self._modules else None


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """As the library's, in half the time: whether a name is read or stored is no node of its own here."""
    for name in node._fields:
        if name == "ctx":
            continue
        held = getattr(node, name, None)
        if isinstance(held, ast.AST):
            yield held
        elif type(held) is list:
            for each in held:
                if isinstance(each, ast.AST):
                    yield each


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    ahead = [node]
    while ahead:
        yield (found := ahead.pop())
        ahead.extend(_children(found))


def _imported(tree: ast.AST) -> Iterator[tuple[str, Key]]:
    for node in _walk(tree):
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                yield each.asname or each.name, (node.module or "", each.name)
        elif isinstance(node, ast.Import):
            for each in node.names:
                if each.asname:
                    yield each.asname, (each.name, "")


def _locals(node: ast.AST) -> frozenset[str]:
    """The names that a function gives to its own values."""
    return frozenset(
        each.arg if isinstance(each, ast.arg) else each.id
        for each in _walk(node)
        if isinstance(each, ast.arg) or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    )


def _targets(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and not each.id.startswith("__"):
                yield each.id


def _defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        yield from _targets(node)
    elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
        for child in _children(node):
            yield from _defined(child)


class Product:
    """All modules together."""

    def __init__(self, sources: Mapping[str, Path]) -> None:
        self.modules = {name: _Module(name, ast.parse(file.read_text()), sources) for name, file in sources.items()}
        self.definitions = {key: found for each in self.modules.values() for key, found in each.definitions.items()}

    def resolved(self, key: Key) -> Key | None:
        """Where a name is defined that may be imported from another module."""
        seen: set[Key] = set()
        while key not in self.definitions and key not in seen:
            seen.add(key)
            module = self.modules.get(key[0])
            if module is None or key[1] not in module.imported:
                return None
            key = module.imported[key[1]]
        return key if key in self.definitions else None

    def is_called_from_outside(self, method: Key) -> bool:
        """Whether the language, a decorator or a base class from elsewhere calls it."""
        node = self.definitions[method].node
        if not isinstance(node, _FUNCTIONS):
            return False
        decorators = " ".join(map(ast.unparse, node.decorator_list))
        return (
            (node.name.startswith("__") and node.name.endswith("__"))
            or any(each in decorators for each in _HAND_OVER)
            or self._has_foreign_base(self.definitions[method].parent)
        )

    def _has_foreign_base(self, key: Key) -> bool:
        node = self.definitions[key].node
        module = self.modules[key[0]]
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
            ours = (key[0], name) if name in module.own else self.resolved(module.imported.get(name, ("", name)))
            if ours in self.definitions:
                if self._has_foreign_base(ours):
                    return True
            elif name.rpartition(".")[2] not in _SILENT_BASES and not hasattr(builtins, name):
                return True
        return False

    def unreached(self, roots: Iterable[Key]) -> set[Key]:
        """What neither these roots nor the modules' own statements reach; of an unused class the class alone."""
        members, methods = defaultdict(list), defaultdict(list)
        for key, found in self.definitions.items():
            if key[1]:
                members[found.parent].append(key)
                methods[key[1].rpartition(".")[2]].append(key)
        reached: set[Key] = set()
        named: set[str] = set()
        ahead = [*roots, *(key for key in self.definitions if not key[1])]
        while ahead:
            key = ahead.pop()
            if key in reached:
                continue
            reached.add(key)
            uses = self.definitions[key]
            new = uses.attributes - named
            named |= new
            ahead += [target for name in uses.names if (target := self.resolved(name)) is not None]
            ahead += [each for name in new for each in methods[name] if self._is_method_of(each, reached)]
            ahead += [each for each in members[key] if self._is_called(each, named)]
        return {key for key, found in self.definitions.items() if key not in reached and found.parent in reached}

    def _is_method_of(self, key: Key, reached: set[Key]) -> bool:
        parent = self.definitions[key].parent
        return parent[1] != "" and parent in reached

    def _is_called(self, key: Key, named: set[str]) -> bool:
        by_name = self.definitions[key].parent[1] != "" and key[1].rpartition(".")[2] in named
        return by_name or self.is_called_from_outside(key)


_Given = tuple[list[str], dict[str, str]]  # the names of a constructor's parameters in order, and what may be left out


def _constructor(node: ast.ClassDef) -> _Given:
    """Of `__init__`, or of a dataclass the fields that hold something to be called or asked."""
    own = _own_init(node)
    if own is not None:
        parameters = [*own.args.posonlyargs, *own.args.args][1:]
        by_place = parameters[len(parameters) - len(own.args.defaults) :]
        pairs = [*zip(by_place, own.args.defaults, strict=True)]
        pairs += [(p, d) for p, d in zip(own.args.kwonlyargs, own.args.kw_defaults, strict=True) if d is not None]
        return [each.arg for each in parameters], {p.arg: ast.unparse(d) for p, d in pairs}
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    names = [ast.unparse(each.target) for each in fields]
    return names, {n: ast.unparse(f.value) for n, f in zip(names, fields, strict=True) if f.value is not None}


def _own_init(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)


def needless_defaults(product: Product, is_asked: Callable[[str, str], bool]) -> set[tuple[str, str, str]]:
    """The parameters of constructors that may be left out, and that the product gives in every call: a mode that never
    runs. Asked of every class that has an `__init__`; of others, which are mostly what is known of a thing, where
    `is_asked` says so, by module and class."""
    found = set()
    calls: dict[Key, list[ast.Call]] = defaultdict(list)
    for module in product.modules.values():
        for node in _walk(module.definitions[(module.name, "")].node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                key = (module.name, name) if name in module.own else module.imported.get(name, ("", ""))
                calls[product.resolved(key) or key].append(node)
    for (where, name), made in calls.items():
        held = product.definitions.get((where, name))
        if held is None or not isinstance(held.node, ast.ClassDef):
            continue
        if _own_init(held.node) is None and not is_asked(where, name):
            continue
        order, defaults = _constructor(held.node)
        found |= {(where, name, each) for each in defaults if all(_gives(call, each, order) for call in made)}
    return found


def _gives(call: ast.Call, name: str, order: list[str]) -> bool:
    return any(each.arg == name for each in call.keywords) or name in order[: len(call.args)]
