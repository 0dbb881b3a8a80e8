"""Make the recorded runs again: what is there is kept, the rest is drawn with the same seeds.

    python runs/record.py built-in STORE
    python runs/record.py real STORE

The runs and their sizes stand in ``data_manifests/recorded_runs.yaml``.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from capcal_lib.manifests import read_yaml
from capcal_lib.places import MANIFESTS

CAPCAL = Path(sys.executable).with_name("capcal")
RECIPES = ("tuned", "paper")


def capcal(store: str, command: str, *options: str) -> None:
    """Run one command on the store, and stop where it fails."""
    subprocess.run([CAPCAL, command, *options, "--store", store], check=True)


def draw(store: str, run: dict[str, Any]) -> None:
    """Draw the samples of one run and make what is made from them."""
    names = ["--model", run["model"], "--dataset", run["dataset"], "--split", run["split"]]
    for size in run["sizes"]:
        limit = ["--limit", str(size["questions"])] if "questions" in size else []
        capcal(store, "sample", *names, *limit, "--k", str(size["samples"]))
    capcal(store, "grade", *names)
    capcal(store, "features", *names)
    if run["use"] == "evaluation":
        for method in ("p-true", "verbalized"):
            capcal(store, "confidence", *names, "--method", method)


def main() -> None:
    kind, store = sys.argv[1], sys.argv[2]
    runs = read_yaml(MANIFESTS / "recorded_runs.yaml")[kind]
    for run in runs:
        draw(store, run)
    models = sorted({run["model"] for run in runs})
    if kind == "real":
        judged = ["--model", "smollm2-135m", "--dataset", "mini-capitals"]
        capcal(store, "judge", *judged, "--judge", "qwen2.5-coder-0.5b")
    for model in models:
        for recipe in RECIPES:
            capcal(store, "probe", "--model", model, "--recipe", recipe)
    if kind == "real":
        for model in ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"):
            for recipe in RECIPES:
                mixture = ["--mix", "triviaqa,gsm8k"]
                capcal(store, "probe", "--model", model, "--recipe", recipe, *mixture)
    subprocess.run([CAPCAL, "verify", "--store", store], check=True)


if __name__ == "__main__":
    main()
