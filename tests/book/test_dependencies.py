"""What a page depends on, in a hand-made package, and in ours."""

import json
from pathlib import Path

import pytest

from capcal_lib.book.dependencies import code_used
from capcal_lib.manifests import NOTEBOOKS, ROOT

TREE = {
    "lib/__init__.py": "",
    "lib/base.py": "X = 1\nY = 2",
    "lib/tools/__init__.py": (
        "from lib.tools.saw import cut, saw\nfrom . import hammer\nfrom .hammer import hit as go"
    ),
    "lib/tools/saw.py": (
        '"""S."""\nfrom lib.base import X as x\ncut = x\n\ndef saw():\n    """S."""\n    return cut'
    ),
    "lib/tools/hammer.py": (
        "import json\njson.warn = 0\n\ndef hit():\n    import lib.base\n    return lib.base.Y"
    ),
    "lib/circle.py": "import lib.round\n\ndef a():\n    return lib.round.b()",
    "lib/round.py": (
        "from lib import circle\n\ndef b():\n    return circle.a()\n\nclass C(circle.D): ..."
    ),
    "lib/late/__init__.py": (
        "from importlib import import_module\n\ndef engine(name):\n    return import_module(name)"
    ),
    "lib/late/diesel.py": "try:\n    import json\nexcept ImportError:\n    json = None\nN = json",
}
SAW = {"tools.saw:saw", "tools.saw:cut", "base:X"}
HIT = {"tools.hammer:hit", "tools.hammer:", "base:Y"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, content in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def used(tree: Path, code: str) -> dict[str, str]:
    notebook = tree / "page.ipynb"
    cells = [
        {"cell_type": "markdown", "source": ["import lib.base"]},
        {"cell_type": "code", "source": [code]},
    ]
    notebook.write_text(json.dumps({"cells": cells}))
    return code_used(notebook, tree / "lib")


@pytest.mark.parametrize(
    ("code", "definitions"),
    [
        ("import json\njson.dumps(1)", set()),
        ("from lib import base", set()),
        ("from lib.base import X\nprint(X)", {"base:X"}),
        ("import lib.base as b\nb.X.real", {"base:X"}),
        ("import lib.base\nlib.base.Y\nlib.base.__file__", {"base:Y"}),
        ("from lib import base\nuse(base)", {"base:X", "base:Y"}),
        ("from lib.base import *", {"base:X", "base:Y"}),
        ("from lib.tools import cut\ncut()", SAW - {"tools.saw:saw"}),
        ("from lib.tools import saw\nsaw()", SAW),
        ("from lib import tools\ntools.go()", HIT),
        ("from lib import tools\ntools.hammer.hit()", HIT),
        ("import lib.tools\nuse(lib.tools)", SAW | HIT),
        ("from lib.round import b\nb", {"round:b", "circle:a"}),
        ("import lib.round\nlib.round.C", {"round:C"}),
        (
            "from lib.late import engine\nengine('diesel')",
            {"late:engine", "late.diesel:json", "late.diesel:N"},
        ),
        (
            "%matplotlib inline\n! ls\ndef f():\n    from lib import base\n    return base.X",
            {"base:X"},
        ),
        ("try:\n    from lib import base\n    base.Y\nexcept ImportError: ...", {"base:Y"}),
    ],
)
def test_what_is_used_is_followed(tree: Path, code: str, definitions: set[str]) -> None:
    found = used(tree, code)
    assert {name.removeprefix("lib.") for name, code in found.items() if code} == definitions


def test_a_change_counts_where_it_is_used_and_words_do_not(tree: Path) -> None:
    page, saw = "from lib.tools import saw\nsaw()", tree / "lib/tools/saw.py"
    before = used(tree, page)
    (tree / "lib/base.py").write_text("X = 1\nY = 3")
    saw.write_text(
        TREE["lib/tools/saw.py"].replace("S.", "Saw again.") + "  # and again\n\ndef other(): ...\n"
    )
    assert used(tree, page) == before
    saw.write_text(TREE["lib/tools/saw.py"].replace("return cut", "return -cut"))
    assert used(tree, page) != before


def test_pages_use_what_they_call_and_not_what_only_others_do() -> None:
    package = ROOT / "capcal_lib"
    for notebook in NOTEBOOKS.glob("[0-9]*.ipynb"):
        found = code_used(notebook, package)
        assert "capcal_lib.book.notebook:about" in found
        assert "capcal_lib.grading.verdicts:grade_run" not in found
        assert (
            "capcal_lib.sampling.engines.transformers:TransformersEngine" in found
        ) == notebook.name.startswith("00")
