"""Keep a page whole where a number that it takes from an executed page is not there: a Sphinx
transform."""

from typing import Any

from docutils import nodes
from myst_nb.ext.glue.crossref import ReplacePendingGlueReferences, read_glue_cache
from myst_nb.ext.glue.utils import PendingGlueReference
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.logging import getLogger

LOGGER = getLogger(__name__)


class WholeParagraphs(SphinxPostTransform):
    """Leave out a paragraph that takes a number which its page has not kept, with a warning.

    In a book of one's own a page may end before it keeps its numbers. Those of the recorded runs
    would be another's in their place, and a wheel has none."""

    default_priority = ReplacePendingGlueReferences.default_priority - 1

    def apply(self, **kwargs: Any) -> None:  # noqa: ARG002
        """Look at all paragraphs of the document."""
        folder = self.env.mystnb_config.output_folder  # type: ignore[attr-defined]
        for paragraph in list(self.document.findall(nodes.paragraph)):
            for number in paragraph.findall(PendingGlueReference):
                if number.key not in read_glue_cache(folder, number.refdoc):
                    LOGGER.warning(
                        "a paragraph is left out, since %s has not kept %r",
                        number.refdoc,
                        number.key,
                        location=paragraph,
                    )
                    paragraph.parent.remove(paragraph)
                    break
