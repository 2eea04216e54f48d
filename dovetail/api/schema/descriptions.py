"""What is said of a model's fields? The text that stands below each of them in the source.

It is read when schemas are written, not when models are defined. Pydantic does the latter (`use_attribute_docstrings`),
and looks through every loaded module for each model: an eighth of the processor time in which a worker starts
(decision record 296).
"""

import ast
import functools
import inspect
from itertools import pairwise

from pydantic import BaseModel


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """By attribute. A field that is stated anew has no text of the one that it stands for."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            found |= _stated(each)
    return {name: text for name, text in found.items() if text}


def _stated(model: type[BaseModel]) -> dict[str, str]:
    """Of the fields that this very class states; empty where nothing is said."""
    module = inspect.getmodule(model)
    classes = _classes(inspect.getsource(module)) if module is not None else {}
    body = classes[model.__name__].body if model.__name__ in classes else []
    fields = {
        node.target.id: "" for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                fields[name] = inspect.cleandoc(words)
    return fields


@functools.cache
def _classes(source: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)}
