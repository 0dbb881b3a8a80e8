"""What pyproject.toml cannot say: the manifests lie beside the package in a checkout, and inside it
in a wheel.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["capcal_lib*"]), "capcal_lib.data_manifests"],
    package_dir={"capcal_lib.data_manifests": "data_manifests"},
    package_data={
        "capcal_lib": ["py.typed"],
        "capcal_lib.data_manifests": ["**/*.yaml", "**/*.csv", "**/*.jsonl"],
    },
)
