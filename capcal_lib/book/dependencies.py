"""What a notebook depends on: the modules that it imports, and those that they import, read from the sources.

A name that a package takes from one of its modules leads to that module alone, so that ``from package import name``
does not depend on all that the package offers. An import inside a function counts as any other.
"""

import ast
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path


def notebook_modules(notebook: Path, package: Path) -> set[Path]:
    """List the files of a package that a notebook imports, directly or not, with what lies beside a package's modules.

    Parameters
    ----------
    notebook
        An ``.ipynb`` file. Lines with magics are passed over.
    package
        The folder of the package; imports of others are not followed.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    lines = [line for cell in code for line in cell.splitlines() if not line.lstrip().startswith(("%", "!"))]
    found: set[Path] = set()
    todo = list(_imports("\n".join(lines), "", package))
    while todo:
        module = todo.pop()
        if module not in found:
            found.add(module)
            if module.name != "__init__.py":
                todo += _imports(module.read_text(encoding="utf-8"), _name(module, package), package)
    data = [file for folder in {module.parent for module in found} for file in folder.iterdir()]
    return found | {file for file in data if file.is_file() and file.suffix not in (".py", ".pyc")}


def _imports(code: str, importer: str, package: Path) -> Iterator[Path]:
    """Find the files that some code imports; a package on the way to a module is one of them."""
    for name, _ in _imported(code, importer):
        yield from _files(name, package)


@lru_cache(1024)
def _imported(code: str, importer: str) -> list[tuple[str, str]]:
    """List what some code imports: the full dotted name, and the name that it has there."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [(alias.name, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importer.rsplit(".", node.level)[0] if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            found += [(f"{source}.{alias.name}".removesuffix(".*"), alias.asname or alias.name) for alias in node.names]
    return found


def _files(name: str, package: Path) -> Iterator[Path]:
    """Return the files behind a dotted name: the packages on the way, and the module or where the name comes from."""
    top, *parts = name.split(".")
    if top != package.name:
        return
    place = package
    for part in parts:
        yield place / "__init__.py"
        if (module := place / f"{part}.py").exists():
            yield module
            return
        if not (place / part).is_dir():
            break
        place = place / part
    else:
        part = ""
        yield place / "__init__.py"
    # What a package offers is imported there, or made there from all that is.
    init = _name(place / "__init__.py", package)
    offered = _imported((place / "__init__.py").read_text(encoding="utf-8"), init)
    for source in [source for source, known_as in offered if known_as == part] or [source for source, _ in offered]:
        yield from _files(source, package)


def _name(module: Path, package: Path) -> str:
    return ".".join(module.relative_to(package.parent).with_suffix("").parts)
