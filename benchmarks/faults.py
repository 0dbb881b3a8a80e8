"""Kill, damage, race, fill, forbid, misserve and mangle, for a given time, and count what survives.

Each class of faults has its share of the time, and at most a number of tries, where one is given.
What a step (sample, grade, merge, ...) leaves behind after a fault must be refused or read as it
was, and the same step, given again, must end with what an undisturbed one leaves: the same rows and
files, verified, and nothing half-written.

    python benchmarks/faults.py [--seconds 600] [--seed 0] [CLASS[=TRIES] ...]

A full disk is by turns a limit on the size of each file (RLIMIT_FSIZE) and, where this process may
mount one, a tmpfs of a few KiB. A folder that may not be written is one without write permission;
root gives up its right to ignore that."""

import argparse
import ctypes
import hashlib
import io
import json
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from capcal_lib.confidence.of_run import estimate
from capcal_lib.errors import InputError
from capcal_lib.grading.judgements import judge_run
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.io.importing import import_samples
from capcal_lib.io.score_file import score_counts
from capcal_lib.io.tables import read_file
from capcal_lib.manifests import read_yaml
from capcal_lib.places import MANIFESTS, RECORDED_RUNS
from capcal_lib.probes.features import extract
from capcal_lib.questions import load_questions
from capcal_lib.reproduce import Order, reproduce
from capcal_lib.rows import stream_rows
from capcal_lib.runs import Run, find_run, open_runs
from capcal_lib.runs.artifacts import artifact_of
from capcal_lib.runs.merge import merge
from capcal_lib.runs.store import read_samples
from capcal_lib.runs.verify import verify_run
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import client, openai
from tests.sampling import chat_server
from tests.sampling.chat_server import ChatServer

SET, SHORT, K, LIMIT = "mini-exam", "mini-capitals", 6, 12
draw = partial(sample, "simulated", limit=LIMIT)


def evaluated(store: Path, dataset: str = SET, split: str = "test") -> Path:
    return find_run(store, "simulated", dataset, split).folder


# What may be disturbed: each takes a store that `start` has filled, and can be given again.
STEPS: dict[str, Callable[[Path], object]] = {
    "sample": lambda store: draw(SET, k=4 * K, store=store),
    "grade": lambda store: grade_run(Run(evaluated(store))),
    "P(True)": lambda store: estimate(Run(evaluated(store)), "p-true"),
    "verbalized": lambda store: estimate(Run(evaluated(store)), "verbalized"),
    "features": lambda store: extract(Run(evaluated(store))),
    "judge": lambda store: judge_run(Run(evaluated(store, SHORT)), "simulated"),
    "import": lambda store: import_samples(
        [store / "rows.jsonl"],
        model="simulated",
        dataset="mini-elements",
        store=store,
        settings={"temperature": 1.0},
    ),
    "merge": lambda store: merge(store, [store / "other"]),
    "reproduce": lambda store: reproduce(
        Order(model="simulated", store=store, datasets=["mini-arithmetic"], limit=4)
    ),
}


def start(store: Path) -> None:
    """Fill a store with what the steps start from."""
    for split in ("test", "train"):
        draw(SET, k=K, store=store, split=split)
    grade_run(draw(SHORT, k=K, store=store).run)
    grade_run(draw(SET, k=2 * K, store=store / "other").run)
    rows = [
        {"question_id": question.id, "response": "gold"}
        for question in load_questions("mini-elements", limit=LIMIT)
    ]
    (store / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def contents(folder: Path) -> dict[str, str]:
    """Return what is read of each file of a run but its sessions, each checked on the way."""
    found = {
        "run.json": Run(folder).record.identity.model_dump_json(),
        "samples": read_samples(Run(folder)).to_json(),
    }
    paths = [path for path in folder.glob("*.parquet") if not path.name.startswith("samples-")]
    return found | {path.name: _seen(path) for path in paths}


def _seen(path: Path) -> str:
    if path.suffix != ".parquet":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    artifact = artifact_of(path.name)
    rows = artifact.read(path) if artifact else pq.read_table(path)
    sink, table = io.BytesIO(), _without_digests(rows)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()


def _without_digests(table: pa.Table) -> pa.Table:
    """Drop the digests of what predictions were made from: a run that went on has the same rows in
    other row groups.
    """
    metadata = dict(table.schema.metadata or {})
    if b"sources" in metadata:
        sources = [each | {"digests": None} for each in json.loads(metadata[b"sources"])]
        metadata[b"sources"] = json.dumps(sources).encode()
    return table.replace_schema_metadata(metadata)


def state(store: Path) -> dict[Path, dict[str, str]]:
    return {run.folder.relative_to(store): contents(run.folder) for run in open_runs(store)}


class Bench:
    """A folder to work in, what is undisturbed, and chance."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        start(folder / "start")
        self.whole = cache(self._whole)

    def fresh(self, place: Path | None = None) -> Path:
        """Return a copy of the store that the steps start from."""
        place = place or self.folder / "work"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.folder / "start", place)
        return place

    def _whole(self, step: str) -> tuple[dict[Path, dict[str, str]], float]:
        """Return what a step leaves undisturbed, and the seconds that it takes in a process of its
        own.
        """
        store = self.fresh(self.folder / "undisturbed")
        begun = time.monotonic()
        assert child(step, store) == ("done", "")
        return state(store), time.monotonic() - begun

    def again(self, step: str, store: Path) -> str:
        """Give a step again, undisturbed; return what is then wrong, or nothing."""
        how, words = child(step, store)
        if how != "done":
            return f"{step}, given again: {how} {words}"
        if state(store) != self.whole(step)[0]:
            return f"{step}, given again, left other rows or files"
        for run in (each.folder for each in open_runs(store)):
            if problems := [
                said for said in verify_run(Run(run)).problems if "samples" not in said
            ]:
                return f"{step}: {run}: {problems}"
            if left := [path.name for path in run.iterdir() if path.name.endswith(".tmp")]:
                return f"{step}: left behind {left}"
        return ""


CONTEXT = multiprocessing.get_context("forkserver")  # children without the threads of this process
CONTEXT.set_forkserver_preload(["benchmarks.faults"])


def child(
    step: str, store: Path, *, kill_after: float | None = None, **limits: Any
) -> tuple[str, str]:
    """Take a step in a process of its own: done, refused with one line, killed, or a crash with its
    traceback.
    """
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_work, args=(theirs, step, store), kwargs=limits)
    process.start()
    theirs.close()
    try:
        ours.recv()  # it is about to begin
        if kill_after is not None:
            time.sleep(kill_after)
            process.kill()
        return ours.recv()
    except EOFError:
        return "killed", ""
    finally:
        process.join()


def _work(
    told: Any, step: str, store: Path, *, file_bytes: int | None = None, forbidden: bool = False
) -> None:
    told.send("begun")
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY))
    if forbidden and os.getuid() == 0:
        _obey_permissions()
    try:
        STEPS[step](store)
    except InputError as error:
        told.send(("refused", str(error)))
    except BaseException:
        told.send(("crash", traceback.format_exc()))
    else:
        told.send(("done", ""))


def _obey_permissions() -> None:
    """Give up root's right to write what may not be written (CAP_DAC_OVERRIDE)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, sets)
    sets[0] &= ~2  # effective
    assert libc.capset(header, sets) == 0


Outcome = tuple[
    str, str
]  # what came of a fault in two or three words, and what is wrong, if anything


def kills(bench: Bench) -> Outcome:
    """Kill a step at any moment."""
    step = bench.rng.choice(list(STEPS))
    seconds = bench.whole(step)[1]
    store = bench.fresh()
    how, words = child(step, store, kill_after=bench.rng.uniform(0, seconds))
    return how, words if how == "crash" else bench.again(step, store)


@contextmanager
def _small_disk(place: Path, kib: int) -> Iterator[bool]:
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(place)]
    mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], check=True)


def full_disks(bench: Bench) -> Outcome:
    """Let a step run out of space: in files, or on a disk; it says so in one line, and given space
    it goes on.
    """
    step = bench.rng.choice(list(STEPS))
    bench.whole(step)
    if bench.rng.random() < 0.5:
        store = bench.fresh()
        how, words = child(step, store, file_bytes=int(10 ** bench.rng.uniform(0, 5)))
    else:
        used = sum(4 + path.stat().st_size // 1024 for path in (bench.folder / "start").rglob("*"))
        with _small_disk(bench.folder / "disk", used + bench.rng.randrange(4, 100)) as mounted:
            if not mounted:
                return "no disk to be had", ""
            store = bench.fresh(bench.folder / "disk" / "store")
            how, words = child(step, store)
            shutil.rmtree(bench.folder / "work", ignore_errors=True)
            store = Path(shutil.copytree(store, bench.folder / "work"))
    return how, _unclear(how, words) or bench.again(step, store)


def _unclear(how: str, words: str) -> str:
    if how == "refused" and "\n" not in words:
        return ""
    return words if how in ("crash", "refused") else ""


def forbidden_folders(bench: Bench) -> Outcome:
    """Take write permission from the folders and files of a store, or some of them."""
    step = bench.rng.choice(list(STEPS))
    bench.whole(step)
    store = bench.fresh()
    share = bench.rng.choice([0.1, 0.5, 1])
    places = [store, *store.rglob("*")]
    for place in places:
        if bench.rng.random() < share:
            place.chmod(0o555 if place.is_dir() else 0o444)
    how, words = child(step, store, forbidden=True)
    for place in [store, *store.rglob("*")]:
        place.chmod(0o755 if place.is_dir() else 0o644)
    return how, _unclear(how, words) or bench.again(step, store)


ODD = [
    "with spaces",
    "ünïcødé 東京",
    "new\nline",
    os.fsdecode(b"\xff\xfe"),
    "-option",
    "$HOME;`x`",
    "a" * 255,
    "a" * 256,
]


def odd_places(bench: Bench) -> Outcome:
    """Keep the store under an odd name, through a link, or where there can be none."""
    step, name = (
        bench.rng.choice(list(STEPS)),
        bench.rng.choice([*ODD, "link", "file", "/proc/none", "/dev/null"]),
    )
    bench.whole(step)
    place = bench.folder / "odd" / name
    shutil.rmtree(bench.folder / "odd", ignore_errors=True)
    place.parent.mkdir(exist_ok=True)
    if name in ("file", "/proc/none", "/dev/null") or len(name) > 255:
        if name == "file":
            place.touch()
        how, words = child(step, place)
        return how, _unclear(how, words) or (
            "" if how == "refused" else "a store where there can be none"
        )
    if name == "link":
        place.symlink_to(bench.fresh())
    else:
        bench.fresh(place)
    how, words = child(step, place)
    return how, _unclear(how, words) or bench.again(step, place)


@cache
def _runs(folder: Path) -> list[Path]:
    """Return the shipped runs, and new ones after all steps."""
    new = folder / "new"
    shutil.copytree(folder / "start", new)
    for step in STEPS.values():
        step(new)
    return [run.folder for store in (RECORDED_RUNS, *4 * [new]) for run in open_runs(store)]


def flips(bench: Bench) -> Outcome:
    """Flip a bit of a part, cut it short, or write other bytes over some of it; then read it as
    everything reads it.
    """
    rng = bench.rng
    original = rng.choice(_runs(bench.folder))
    name = rng.choice(sorted(original.glob("samples-*"))).name
    folder = bench.folder / "flipped" / "m" / "d" / original.name
    shutil.rmtree(bench.folder / "flipped", ignore_errors=True)
    shutil.copytree(original, folder)
    path, content = folder / name, bytearray((folder / name).read_bytes())
    at = rng.randrange(len(content))
    if rng.random() < 0.25:
        at = rng.randrange(
            max(0, len(content) - 2000), len(content)
        )  # where parquet keeps its metadata
    how = rng.choice(["flip", "flip", "flip", "cut", "write"])
    if how == "flip":
        content[at] ^= 1 << rng.randrange(8)
    elif how == "cut":
        del content[at:]
    else:
        content[at : at + 16] = rng.randbytes(min(16, len(content) - at))
    if content == path.read_bytes():
        return "the same bytes", ""
    path.write_bytes(content)
    kind = "shipped" if RECORDED_RUNS in original.parents else "new"
    try:
        read_samples(Run(folder))
        strange, said = _seen(path) != _seen(original / name), ()
    except InputError as error:
        return f"{kind}: refused", "" if "\n" not in str(error) else str(error)
    except Exception:
        return f"{kind}: crash", f"{original} {name} {how} at {at}: {traceback.format_exc()}"
    if strange:
        return (
            f"{kind}: MISSED",
            f"{original} {name}: {how} at {at} of {len(content)} was read as other data",
        )
    return f"{kind}: named by verify" if said else f"{kind}: harmless", ""


def _merging(told: Any, moment: float, into: Path, source: Path) -> None:
    time.sleep(max(0, moment - time.time()))
    try:
        merge(into, [source])
        told.send("done")
    except InputError as error:
        told.send(
            next(
                (
                    word
                    for word in ("is being written by", "two different rows")
                    if word in str(error)
                ),
                str(error),
            )
        )
    except BaseException:
        told.send(traceback.format_exc())


def races(bench: Bench, number: int) -> Outcome:
    """Merge stores into one at the same moment. The first two conflict in a sample in half of the
    races.
    """
    folder, conflict = bench.folder / "race", bench.rng.random() < 0.5
    shutil.rmtree(folder, ignore_errors=True)
    sources = [folder / str(place) for place in range(number)]
    for place, source in enumerate(sources):
        shutil.copytree(_racing(bench.folder, place, conflict), source)
    moment, running = time.time() + 0.3, []
    for source in sources:
        ours, theirs = CONTEXT.Pipe()
        late = moment + bench.rng.choice([0, 0, bench.rng.uniform(0, 0.1)])
        process = CONTEXT.Process(target=_merging, args=(theirs, late, folder / "into", source))
        process.start()
        running.append((process, ours))
    words = [ours.recv() for _, ours in running]
    for process, _ in running:
        process.join()
    done = [source for source, word in zip(sources, words, strict=True) if word == "done"]
    if not done or set(words) - {"done", "is being written by", "two different rows"}:
        return "crash", f"{words}"
    if conflict and set(sources[:2]) <= set(done):
        return "CONFLICT", "two stores that conflict were both merged"
    [run] = [run.folder for run in open_runs(folder / "into")]
    rows = pa.concat_tables(
        pa.Table.from_pandas(read_samples(*open_runs(source)), preserve_index=False)
        for source in done
    )
    expected = (
        rows.to_pandas()
        .drop_duplicates()
        .sort_values(["question_id", "sample_index"], ignore_index=True)
    )
    grade_run(Run(run))
    problems = [said for said in verify_run(Run(run)).problems if "samples missing" not in said]
    if problems or not read_samples(Run(run)).equals(expected):
        return "OTHER ROWS", f"{done}: {problems}"
    return f"{len(done)} of {number} merged, others refused", ""


@cache
def _racing(folder: Path, place: int, conflict: bool) -> Path:
    store = folder / "racing" / f"{place}-{conflict}"
    run = sample("simulated", SET, k=2 + place, limit=6 - place, store=store).run.folder
    if conflict and place == 1:
        from capcal_lib.runs.files import write_table

        (part,) = run.glob("samples-*")
        rows = pq.read_table(part)
        part.unlink()
        changed = pa.array(["another", *rows["response"].to_pylist()[1:]])
        write_table(run / "samples-*.parquet", rows.set_column(2, "response", changed))
    grade_run(Run(run))
    return store


KEY = "sk-0123456789abcdef"
OWN_WORDS = "the key in a refusal"
MODES = {
    **{
        f"status {code}": chat_server.status(code)
        for code in (400, 404, 422, 429, 500, 502, 503, 504)
    },
    "Retry-After: inf": chat_server.status(503, Retry_After="inf"),
    "Retry-After: 1e9": chat_server.status(429, Retry_After="1000000000"),
    OWN_WORDS: chat_server.echo(400),
    "broken off": chat_server.cut,
    "late": chat_server.slow(0.3),
    "another model": chat_server.other_model,
    "no JSON": chat_server.raw(b"<html>"),
    "deep JSON": chat_server.raw(b"[" * 100_000),
    "no choices": chat_server.raw(
        b'{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}'
    ),
    "odd numbers": chat_server.raw(
        b'{"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": 1e99}}'
    ),
    "compressed": chat_server.raw(b"\x1f\x8b" + bytes(999), Content_Encoding="gzip"),
}


def servers(bench: Bench) -> Outcome:
    """Let a server misbehave at some requests; nothing is lost silently or doubled, and what failed
    is drawn later.
    """
    rng, store = bench.rng, bench.folder / "served"
    shutil.rmtree(store, ignore_errors=True)
    mode, share, seed = rng.choice(list(MODES)), rng.choice([0.1, 0.5, 1]), rng.randrange(2**32)

    def fault(number: int, body: dict[str, Any]) -> Any:  # noqa: ARG001
        return MODES[mode] if random.Random(seed + number).random() < share else None

    def ask(server: ChatServer) -> tuple[int, int]:
        os.environ["OPENAI_BASE_URL"] = server.url
        drawn = sample("simulated", SHORT, k=5, limit=6, store=store, engine="openai")
        found = estimate(drawn.run, "verbalized", engine="openai") if not drawn.failed else ()
        missing = int((found.tokens == 0).sum()) if len(found) else 0
        words = "\n".join(
            [
                *drawn.failed,
                *(path.read_bytes().decode("latin-1") for path in drawn.run.folder.iterdir()),
            ]
        )
        if KEY in words and mode != OWN_WORDS:  # which a server may say of itself
            raise AssertionError("the key was shown")
        if drawn.new + drawn.present + sum(drawn.failed.values()) != 30:
            raise AssertionError(
                f"{drawn.new} drawn, {drawn.present} there, {drawn.failed} failed, of 30"
            )
        return sum(drawn.failed.values()), missing

    hasty = partial(openai.OpenAIEngine, in_flight=4)
    settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": ""}
    try:
        with (
            patch.object(client, "PATIENCE", 0.2),
            patch.object(openai, "OpenAIEngine", hasty),
            patch.dict(os.environ, settings),
        ):
            with ChatServer(models=("simulated",), fault=fault) as server:
                failed, missing = ask(server)
            with ChatServer(models=("simulated",)) as server:
                if ask(server) != (0, 0):
                    return "failed again", mode
    except InputError as error:
        return "refused", f"{mode}: {error}"
    except Exception:
        return "crash", f"{mode}: {traceback.format_exc()}"
    rows = read_samples(Run(evaluated(store, SHORT)))
    expected = cache(_answers)(str(bench.folder))
    if not rows[["question_id", "sample_index", "response"]].equals(expected):
        return "OTHER ROWS", mode
    return "failures counted, drawn later" if failed or missing else "all answered", ""


@cache
def _answers(folder: str) -> Any:
    store = Path(folder) / "calm"
    with (
        ChatServer(models=("simulated",)) as server,
        patch.dict(os.environ, {"OPENAI_BASE_URL": server.url}),
    ):
        run = sample("simulated", SHORT, k=5, limit=6, store=store, engine="openai").run.folder
    return read_samples(Run(run))[["question_id", "sample_index", "response"]]


YAML = [
    "&a [*a]",
    "[" * 5000,
    "{a: 1, a: 2}",
    "!!python/object/apply:os.system ['true']",
    "\x00",
    "- &a x\n- *a\n",
]


def hostile_files(bench: Bench) -> Outcome:
    """Mangle a manifest, a table to be scored, or rows to be graded; each is read as something or
    refused in a line.
    """
    rng, folder = bench.rng, bench.folder / "files"
    folder.mkdir(exist_ok=True)
    kind = rng.choice(["yaml", "csv", "jsonl"])
    if kind == "yaml":
        content = rng.choice(sorted(MANIFESTS.rglob("*.yaml"))).read_bytes()
    elif kind == "csv":
        content = b"question_id,confidence,correct,total\n" + b"".join(
            b"q%d,0.%d,3,9\n" % (i, i) for i in range(20)
        )
    else:
        content = b"".join(
            json.dumps({"question_id": str(i), "confidence": i / 9}).encode() + b"\n"
            for i in range(9)
        )
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(content))
        odd = [
            rng.randbytes(3),
            b'"',
            b",,",
            b"\n\n",
            b"NaN",
            b"1e999",
            b"\xff",
            b"-1",
            "٣".encode(),
            b"\r",
            b"x" * 9999,
        ]
        piece = rng.choice([*odd, *(word.encode() for word in YAML)])
        content = content[:at] + piece + content[at + rng.choice([0, 1, len(piece)]) :]
    path = folder / f"file.{kind}"
    path.write_bytes(content)
    begun = time.process_time()
    try:
        {
            "yaml": read_yaml,
            "csv": lambda path: score_counts(read_file(path).table),
            "jsonl": lambda path: list(stream_rows(path)),
        }[kind](path)
        how, words = f"{kind}: read", ""
    except InputError as error:
        how, words = f"{kind}: refused", str(error) if "\n" in str(error) else ""
    except Exception:
        how, words = f"{kind}: crash", f"{content!r}: {traceback.format_exc()}"
    seconds = time.process_time() - begun
    return how, words or (f"took {seconds:.1f} s" if seconds > 10 else "")


CLASSES: dict[str, Callable[[Bench], Outcome]] = {
    "kills": kills,
    "flips": flips,
    "races of two merges": partial(races, number=2),
    "races of three merges": partial(races, number=3),
    "full disks": full_disks,
    "forbidden folders": forbidden_folders,
    "odd places": odd_places,
    "server modes": servers,
    "hostile files": hostile_files,
}


def run(
    folder: Path, tries: dict[str, int], *, seconds: float, seed: int
) -> Iterator[tuple[str, Outcome]]:
    """Try faults of each class, so many, or for its share of the time that is left, and yield what
    came of each.
    """
    bench, end = Bench(folder, seed), time.monotonic() + seconds
    for place, name in enumerate(tries):
        share = time.monotonic() + (end - time.monotonic()) / (len(tries) - place)
        for _ in range(tries[name]):
            if time.monotonic() > share:
                break
            yield name, CLASSES[name](bench)


def main() -> None:
    """Run it, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "classes",
        nargs="*",
        metavar="CLASS[=TRIES]",
        default=list(CLASSES),
        help=", ".join(CLASSES),
    )
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    pairs = [word.partition("=") for word in given.classes]
    tries = {name: int(number or sys.maxsize) for name, _, number in pairs}
    came: dict[str, Counter[str]] = {name: Counter() for name in tries}
    failed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, (how, wrong) in run(Path(folder), tries, seconds=given.seconds, seed=given.seed):
            came[name][how] += 1
            if wrong:
                failed[name] += 1
                print(f"FAILED {name}, {how}: {wrong}", flush=True)
    print("| faults | tried | survived | failed | what came of them |\n|---|---|---|---|---|")
    for name, found in came.items():
        tried = found.total()
        detail = ", ".join(f"{number:,} {how}" for how, number in sorted(found.items()))
        print(f"| {name} | {tried:,} | {tried - failed[name]:,} | {failed[name]:,} | {detail} |")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
