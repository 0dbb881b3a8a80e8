"""What a page depends on, in a hand-made package, and in ours."""

import json
from pathlib import Path

import pytest

from capcal_lib.book.dependencies import notebook_modules
from capcal_lib.manifests import NOTEBOOKS, ROOT

TREE = {
    "lib/__init__.py": "",
    "lib/base.py": "X = 1",
    "lib/lonely.py": "",
    "lib/late.py": "",
    "lib/tools/__init__.py": "from lib.tools.saw import cut\nfrom .hammer import hit as strike",
    "lib/tools/saw.py": "from lib.base import X\ncut = X",
    "lib/tools/hammer.py": "import json\n\ndef hit():\n    import lib.late",
    "lib/tools/words.yaml": "a: 1",
    "lib/made/__init__.py": "from lib.base import X\n\ndef y():\n    return X",
    "lib/circle.py": "import lib.round",
    "lib/round.py": "from lib import circle",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, content in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def depends(tree: Path, code: str) -> set[str]:
    notebook = tree / "page.ipynb"
    cells = [{"cell_type": "markdown", "source": ["import lib.lonely"]}, {"cell_type": "code", "source": [code]}]
    notebook.write_text(json.dumps({"cells": cells}))
    found = notebook_modules(notebook, tree / "lib")
    return {path.relative_to(tree / "lib").as_posix().removesuffix(".py") for path in found} - {"__init__"}


TOOLS = {"tools/__init__", "tools/words.yaml"}


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        ("import json", set()),
        ("from lib.base import X", {"base"}),
        ("import lib.base as b", {"base"}),
        ("from lib import base, lonely", {"base", "lonely"}),
        ("from lib.tools import cut", {*TOOLS, "tools/saw", "base"}),
        ("from lib.tools import strike", {*TOOLS, "tools/hammer", "late"}),
        ("from lib.tools.hammer import hit", {*TOOLS, "tools/hammer", "late"}),
        ("import lib.tools", {*TOOLS, "tools/saw", "tools/hammer", "base", "late"}),
        ("from lib.tools import *", {*TOOLS, "tools/saw", "tools/hammer", "base", "late"}),
        ("from lib.made import y", {"made/__init__", "base"}),
        ("%matplotlib inline\n! ls\nimport lib.circle", {"circle", "round"}),
        ("def f():\n    from lib import late", {"late"}),
    ],
)
def test_what_is_imported_is_followed(tree: Path, code: str, modules: set[str]) -> None:
    assert depends(tree, code) == modules


def test_a_page_does_not_depend_on_what_only_others_import() -> None:
    package = ROOT / "capcal_lib"
    for notebook in NOTEBOOKS.glob("[0-9]*.ipynb"):
        found = notebook_modules(notebook, package)
        assert package / "__init__.py" in found
        assert package / "cli.py" not in found
