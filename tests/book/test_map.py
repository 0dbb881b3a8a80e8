"""The map of the paper has everything that is in the paper."""

import re

from capcal_lib.manifests import read_yaml
from capcal_lib.places import BOOK, MANIFESTS, NOTEBOOKS
from tests.outside import PAPER, needs_paper

MAP = (BOOK / "reference" / "paper_map.md").read_text(encoding="utf-8")
ITEMS = read_yaml(MANIFESTS / "paper.yaml")["items"]


def test_every_item_of_the_paper_has_a_row_with_its_title() -> None:
    rows = dict(re.findall(r"^\* - \*\*\{index\}`!(.+?)`\*\* (.+)$", MAP, flags=re.MULTILINE))
    assert rows == {item["number"]: item["title"] for item in ITEMS}


@needs_paper
def test_every_label_of_the_paper_is_that_of_an_item() -> None:
    text = re.sub(r"(?<!\\)%.*", "", PAPER.read_text(encoding="utf-8"))
    labels = {*re.findall(r"\\label\{([^}]*)\}", text)}
    labels.remove("app:probing")  # a second one of appendix C.2
    assert labels == {item["label"] for item in ITEMS if "label" in item}


def test_every_page_that_it_names_is_there() -> None:
    names = {*re.findall(r"\(\.\./notebooks/(\w+)\.ipynb", MAP)}
    assert names <= {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
