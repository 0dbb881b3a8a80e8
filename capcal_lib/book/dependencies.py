"""What a notebook depends on: the definitions of a package that it uses, and those that they use,
by the sources.

A name leads to the statements that bind it, through whatever it was imported from, so that a page
does not depend on all that a module holds or a package offers. A module that is used as a value
stands for all that it binds; code that imports modules by their names, for all modules beside it.
Comments and docstrings do not count.

Names are written as ``module:name.attribute``, like entry points.
"""

import ast
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

BY_NAME = "importlib:import_module"


class _Definition(NamedTuple):
    code: str
    uses: frozenset[str]


class _Module(NamedTuple):
    name: str
    package: str  # that it is, or in which it is
    binds: dict[str, _Definition]  # by name; what runs at the import and binds nothing has no name
    imports: dict[str, str]  # each imported name: what it stands for


def code_used(notebook: Path, package: Path) -> dict[str, str]:
    """Return the code of each definition of a package that a notebook uses, directly or not, by its
    name.

    What a module does at its import beside binding names is used with each of its definitions,
    under no name. Lines of the ``.ipynb`` file with magics are passed over, and what is defined
    outside the folder ``package`` is not followed."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    lines = [
        line
        for cell in code
        for line in cell.splitlines()
        if not line.lstrip().startswith(("%", "!"))
    ]
    page = _parsed("\n".join(lines), "", "")
    found: dict[str, str] = {}
    todo = {name for definition in page.binds.values() for name in definition.uses} | {
        page.imports.get("*", ":")
    }
    seen: set[str] = set()
    while todo := todo - seen:
        seen.add(name := todo.pop())
        module, parts = _find(name, package)
        if module is None:
            continue
        if parts and parts[0] in module.imports:
            todo.add(_dotted(module.imports[parts[0]], *parts[1:]))
        elif not parts and module.name == module.package:
            todo |= set(module.imports.values())
        for bound, definition in module.binds.items():
            if not parts or bound in ("", parts[0]):
                found[f"{module.name}:{bound}"] = definition.code
                todo |= definition.uses
                if BY_NAME in definition.uses:
                    beside = package.parent.joinpath(*module.package.split(".")).glob("[!_]*.py")
                    todo |= {f"{module.package}:{file.stem}" for file in beside}
    return found


def _find(name: str, package: Path) -> tuple[_Module | None, list[str]]:
    """Follow a name into a package: to the module that binds it or is meant, and the parts that are
    left.
    """
    path, _, attributes = name.partition(":")
    parts = attributes.split(".") if attributes else []
    module = _read(path, package)
    while module and parts and parts[0] not in module.binds:
        inside = _dotted(f"{module.name}:", parts[0])
        if module.imports.get(parts[0], inside) != inside:
            break
        module, parts = _read(inside.replace(":", "."), package), parts[1:]
    return module, parts


def _read(name: str, package: Path) -> _Module | None:
    """Read a module of a package; None where there is none of the name."""
    place = package.parent.joinpath(*name.split("."))
    if name.partition(".")[0] != package.name:
        return None
    if place.is_dir():
        return _parsed((place / "__init__.py").read_text(encoding="utf-8"), name, name)
    file = place.with_suffix(".py")
    return (
        _parsed(file.read_text(encoding="utf-8"), name, name.rpartition(".")[0])
        if file.exists()
        else None
    )


@lru_cache(1024)
def _parsed(code: str, name: str, package: str) -> _Module:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            del node.body[0]
    binds: dict[str, list[ast.stmt]] = {"": []}
    imports: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names = {statement.name}
        else:
            imports |= _imported(statement, package)
            stored = [each for each in ast.walk(statement) if isinstance(each, ast.Name)]
            names = {each.id for each in stored if isinstance(each.ctx, ast.Store)} or {""}
        for bound in names if not isinstance(statement, ast.Import | ast.ImportFrom) else ():
            binds.setdefault(bound, []).append(statement)
    definitions = {}
    for bound, statements in binds.items():
        uses = set()
        for statement in statements:
            known = imports | _imported(statement, package)
            for first, *attributes in _mentioned(statement):
                if first in known:
                    uses.add(_dotted(known[first], *attributes))
                elif first in binds:
                    uses.add(f"{name}:{first}")
        definitions[bound] = _Definition("\n".join(map(ast.dump, statements)), frozenset(uses))
    return _Module(name, package, definitions, imports)


def _imported(tree: ast.AST, package: str) -> dict[str, str]:
    """Map the names that some code in a package imports to what they stand for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found[alias.asname or top] = f"{alias.name if alias.asname else top}:"
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            found |= {
                alias.asname or alias.name: f"{source}:{alias.name}".removesuffix("*")
                for alias in node.names
            }
    return found


def _mentioned(node: ast.AST) -> Iterator[list[str]]:
    """List the names in some code, each with the attributes that are taken of it."""
    attributes: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        attributes.insert(0, inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield [inner.id, *attributes]
    else:
        for child in ast.iter_child_nodes(node):
            yield from _mentioned(child)


def _dotted(name: str, *attributes: str) -> str:
    return name + ("." if attributes and name[-1] != ":" else "") + ".".join(attributes)
