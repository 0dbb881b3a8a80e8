"""What a widget puts on its page; ``test_in_a_browser`` plays with them."""

import json
import re

import pytest

from capcal_lib.book.tables import Html
from capcal_lib.book.widgets import widget
from capcal_lib.manifests import BOOK, NOTEBOOKS

TABLE = Html("<p>table</p>")


def test_answers_of_a_model_stay_text():
    data = {"answers": ["</script><script>alert(1)</script>", "<!--", "μ & 'ν'"]}
    html = widget("coin", data, "Ask <b>once</b>.", fallback=TABLE, evidence="measured").html
    assert html.lower().count("</script") == 1
    assert "<!--" not in html
    assert "<b>" not in html
    [kept] = re.findall(r"<script type='application/json'>(.*?)</script>", html)
    assert json.loads(kept) == data


def test_what_no_script_reads_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        widget("coin", {"share": float("nan")}, "Ask.", fallback=TABLE, evidence="measured")


def test_the_script_draws_every_kind():
    script = (BOOK / "static" / "widgets.js").read_text(encoding="utf-8")
    [kinds] = re.findall(r"const kinds = \{ (.*) \};", script)
    pages = [*NOTEBOOKS.glob("*.py"), *BOOK.rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    asked = re.findall(r"""(?:widget\(\s*"|data-widget=['"])(\w+)""", text)
    assert set(kinds.split(", ")) == set(asked)
