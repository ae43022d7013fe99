"""The one thing pyproject.toml can't say: packages found by search, and one that lies elsewhere."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["opc", "opc.*"]), "opc.runtime"],
    package_dir={"opc.runtime": "runtime"},
)
