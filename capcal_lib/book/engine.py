"""Papermill's engine for the pages: what is below the end of a page is not in the result.

Papermill loads it by its entry point, while it is imported itself, and then takes it whenever no
other engine is named. To a notebook that is none of ours nothing happens.
"""

from typing import Any

from capcal_lib.book.layout import cut


def __getattr__(name: str) -> Any:
    if name != "Engine":
        raise AttributeError(name)
    from papermill.engines import NBClientEngine, papermill_engines

    class Engine(NBClientEngine):  # type: ignore[misc]
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **settings: Any) -> None:
            super().execute_managed_notebook(nb_man, kernel_name, **settings)
            cut(nb_man.nb)

    papermill_engines.register(None, Engine)
    return Engine
