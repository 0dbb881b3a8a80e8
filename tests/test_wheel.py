"""A wheel works without a checkout: it holds the manifests and printed numbers, and keeps runs
where one stands.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from capcal_lib.manifests import dataset_names, model_names
from capcal_lib.places import ROOT
from capcal_lib.reported import load_reported

pytestmark = pytest.mark.slow

CODE = """
import json
from capcal_lib import manifests, places
from capcal_lib.reported import load_reported
from capcal_lib.questions import load_questions
print(json.dumps({
    "at": manifests.__file__,
    "models": manifests.model_names(),
    "datasets": manifests.dataset_names(),
    "reported": len(load_reported()),
    "store": str(places.LOCAL_RUNS),
    "question": load_questions("mini-exam")[0].id,
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which a wheel of this checkout is unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("capcal_lib", "data_manifests", "notebooks", "book"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "_config.yml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, source], check=True
    )
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", folder / "site", wheel], check=True)
    return folder / "site"


def test_an_installed_wheel_is_whole(installed: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    found = json.loads(done.stdout)
    assert Path(found["at"]).is_relative_to(installed)
    assert found["models"] == model_names()
    assert found["datasets"] == dataset_names()
    assert found["reported"] == len(load_reported())
    assert found["store"] == "runs/local"
    assert found["question"] == "mini-exam/test/" + found["question"].rpartition("/")[2]


def test_an_installed_wheel_samples_where_one_stands(installed: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [
        sys.executable,
        "-c",
        "from capcal_lib.cli import main; main()",
        "sample",
        "--model",
        "simulated",
    ]
    command += ["--dataset", "mini-exam", "--k", "2", "--limit", "2"]
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert list((tmp_path / "runs" / "local" / "simulated" / "mini-exam-test").iterdir())


def refuse(place: Path, folder: Path, lacking: str, *words: str) -> str:
    """Give a command in a folder, without a package; return the line in which it is refused."""
    code = f"import sys, scipy.stats; sys.modules[{lacking!r}] = None\n"
    code += "from capcal_lib.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert not list(folder.iterdir())
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("at", ["checkout", "wheel"])
def test_without_torch_a_command_says_what_to_install_and_writes_nothing(
    installed: Path, tmp_path: Path, at: str
) -> None:
    asked = ["sample", "--model", "smollm2-135m", "--dataset", "mini-exam", "--k", "1"]
    place = installed if at == "wheel" else ROOT
    line = refuse(place, tmp_path, "torch", *asked, "--store", str(tmp_path / "store"))
    package = "'capcal[local]'" if at == "wheel" else "-e '.[local]'"
    assert f"needs torch, not installed; run: pip install {package}; or use a server" in line


def test_without_its_extra_a_command_names_it_and_writes_nothing(
    installed: Path, tmp_path: Path
) -> None:
    line = refuse(installed, tmp_path, "papermill", "notebooks", "--model", "simulated")
    needed = "this needs papermill, which is not installed; run: pip install 'capcal[book]'"
    assert line == f"capcal: {needed}"


PAGE = """
from pathlib import Path
from capcal_lib.book.pipeline import book_pages, execute
pages = {"04_main_table": book_pages(["gpt-oss-20b"])["04_main_table"]}
assert not execute(pages, Path("pages"), say=print)
"""


def test_a_wheel_has_the_pages_which_say_that_nothing_is_measured(
    installed: Path, tmp_path: Path
) -> None:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    for name in (
        "notebooks/04_main_table.ipynb",
        "book_source/_toc.yml",
        "book_source/_config.yml",
    ):
        assert (installed / "capcal_lib" / name).is_file()
    subprocess.run([sys.executable, "-c", PAGE], cwd=tmp_path, env=environment, check=True)
    page = (tmp_path / "pages/04_main_table.ipynb").read_text()
    assert "has no samples of gpt-oss-20b, so nothing here is measured" in page
    assert "capability Brier score as printed" in page
