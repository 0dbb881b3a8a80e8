"""What pyproject.toml cannot say: manifests, notebooks and pages lie beside the package in a
checkout, and inside it in a wheel.
"""

from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

BESIDE = {
    "capcal_lib.data_manifests": "data_manifests",
    "capcal_lib.notebooks": "notebooks",
    "capcal_lib.book_source": "book",
}


class WithSettings(build_py):
    """Put the book's settings, which lie at the root, beside its pages."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.copy_file("_config.yml", str(Path(self.build_lib, "capcal_lib", "book_source")))


setup(
    cmdclass={"build_py": WithSettings},
    packages=[*find_packages(include=["capcal_lib*"]), *BESIDE],
    package_dir=BESIDE,
    package_data={
        "capcal_lib": ["py.typed"],
        "capcal_lib.data_manifests": ["**/*.yaml", "**/*.csv", "**/*.jsonl"],
        "capcal_lib.notebooks": ["*.ipynb"],
        "capcal_lib.book_source": ["**/*"],
    },
)
