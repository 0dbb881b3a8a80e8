"""What tests may read that is not in the repository; those that need it are skipped without it.

``CAPCAL_DATA_DIR`` names a folder with copies of the real data sets, ``CAPCAL_PAPER`` one with the
paper's source, ``paper.tex``, and with ``reference_code_facts.md``, notes on the authors' code.
"""

import os
from pathlib import Path

import pytest

NOWHERE = "/nonexistent"
DATA = Path(os.environ.get("CAPCAL_DATA_DIR", NOWHERE))
PAPER = Path(os.environ.get("CAPCAL_PAPER", NOWHERE), "paper.tex")
FACTS = Path(os.environ.get("CAPCAL_PAPER", NOWHERE), "reference_code_facts.md")

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="no copies of the real data sets: set CAPCAL_DATA_DIR"
)
needs_paper = pytest.mark.skipif(
    not PAPER.exists(), reason="no source of the paper: set CAPCAL_PAPER"
)
needs_facts = pytest.mark.skipif(
    not FACTS.exists(), reason="no notes on the authors' code: set CAPCAL_PAPER"
)
