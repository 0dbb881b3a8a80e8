import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.outside import DATA

# A job in the background is started with Ctrl-C ignored, and would hand that on to the commands
# that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# jsonschema, which every reader of notebooks imports, does without it; its grammar of addresses
# takes seconds to build.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# Whether a test passes depends neither on how busy the machine is nor on the day's inputs. Other
# inputs than those of every day come with: pytest --hypothesis-profile=search
always = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("search", **always)
settings.register_profile("capcal", derandomize=True, **always)
settings.load_profile("capcal")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data set copies; a test that needs it is skipped where there is none."""
    if not DATA.is_dir():
        pytest.skip("no copies of the real data sets: set CAPCAL_DATA_DIR")
    return DATA


@pytest.fixture(autouse=True, scope="session")
def without_data() -> Iterator[None]:
    """What a test does depends on real data sets only where it asks for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CAPCAL_DATA_DIR", raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def unsynced() -> Iterator[None]:
    """What is written outlives a killed process without waiting for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight questions with one sample each; a test that changes it takes `run`."""
    from capcal_lib.sampling.draw import sample

    store = tmp_path_factory.mktemp("store")
    return sample("simulated", "mini-capitals", k=1, limit=8, store=store).run.folder


@pytest.fixture
def run(drawn: Path, tmp_path: Path) -> Path:
    """A copy of `drawn`."""
    return shutil.copytree(drawn, tmp_path / Path(*drawn.parts[-3:]))
