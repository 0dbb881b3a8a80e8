"""Pages executed one after the other in one kernel: most of what a page takes is the start of its
kernel and the imports.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from capcal_lib.book.page import EndOfPage
from capcal_lib.places import NOTEBOOKS, ROOT

Run = Callable[..., NotebookNode]

# As in a new kernel: without names, cells and figures of the page before, and warned again.
AFRESH = """\
%reset -f
%reset -f in
import warnings
from matplotlib import pyplot
pyplot.close("all")
with warnings.catch_warnings():
    pass  # Python forgets which warnings it has shown
"""


@contextmanager
def one_kernel(**environment: str) -> Iterator[Run]:
    """Start a kernel; in it, run a page of a name with parameters, as papermill does."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(ROOT), env=os.environ | environment)

    def run(name: str, **parameters: object) -> NotebookNode:
        page = load_notebook_node(str(NOTEBOOKS / f"{name}.ipynb"))
        page = parameterize_notebook(page, parameters)
        page.cells.insert(0, nbformat.v4.new_code_cell(AFRESH))  # type: ignore[no-untyped-call]
        client = NotebookClient(page, km=manager)
        try:
            client.execute()
        except CellExecutionError as error:
            if error.ename != EndOfPage.__name__:
                raise
        finally:
            client.kc.stop_channels()  # type: ignore[union-attr]
        del page.cells[0]
        return page

    try:
        yield run
    finally:
        manager.shutdown_kernel(now=True)
