"""Draw until each question's interval is narrow enough: sample, grade, look, and go on where it is
not.
"""

from dataclasses import dataclass
from typing import Unpack

from capcal_lib.grading.verdicts import grade_run
from capcal_lib.runs.run import Run
from capcal_lib.runs.stopping import Rule, ends_of
from capcal_lib.sampling.draw import Progress, RunOptions, open_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What a call to ``sample_until`` did."""

    run: Run
    new: int  # samples drawn
    questions: int
    early: int  # questions that stopped before k
    # samples that k for every question would have taken beyond those of the ones that stopped
    saved: int
    failed: dict[str, int]  # samples that could not be drawn, by reason


def sample_until(
    model: str,
    dataset: str,
    *,
    precision: float,
    k: int,
    progress: Progress | None = None,
    **options: Unpack[RunOptions],
) -> Stopped:
    """Draw samples of each question until the rule of ``stopping`` stops it, and grade them on the
    way.

    The run is the one that ``sample`` draws, with its parameters and errors: a question that stops
    at n samples has the first n of them. Raising k, narrowing the precision or leaving it out goes
    on from there. ``precision``, in (0, 0.5), is the half-width of the 95 % Jeffreys interval at
    which a question has had enough, and ``k``, at least 2, the samples at which it stops in any
    case.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as store:
    ...     done = sample_until("simulated", "mini-exam", precision=0.1, k=100, store=Path(store),
    ...     limit=4)
    >>> done.new + done.saved == 4 * 100
    True
    """
    rule = Rule(precision, k)
    with open_run(model, dataset, k=k, precision=precision, **options) as drawing:
        run = drawing.writer.run
        new = 0
        left: set[str] = set()  # questions that lack a sample after all, left for another run
        while True:
            if drawing.writer.rows:
                grade_run(run)
            ends, stopped = ends_of(run, rule) if drawing.writer.rows else ({}, set[str]())
            ks = {name: ends.get(name, rule.looks[0]) for name in drawing.asked}
            going = {name: at for name, at in ks.items() if name not in stopped | left}
            if not going:
                break
            most = sum(map(len, drawing.writer.missing(dict.fromkeys(going, k)).values()))
            new += drawing.draw(going, progress and _after(progress, new, new + most))
            left |= drawing.writer.missing(going).keys()
    counted = [ends[name] for name in drawing.asked if name in stopped]
    return Stopped(
        run=run,
        new=new,
        questions=len(drawing.asked),
        early=sum(at < k for at in counted),
        saved=sum(k - at for at in counted),
        failed=dict(drawing.failed),
    )


def _after(progress: Progress, before: int, most: int) -> Progress:
    """Report one round of drawing as a part of all rounds; how many samples these take is known
    only at the end.
    """
    return lambda drawn, _: progress(before + drawn, most)
