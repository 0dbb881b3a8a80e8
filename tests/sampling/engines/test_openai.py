"""The openai engine against a real server on this machine, which misbehaves on purpose."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capcal_lib.confidence.of_run import estimate
from capcal_lib.confidence.verbalized import verbalized
from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.runs import Run
from capcal_lib.runs.store import Sample, read_samples
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import check_engine, open_engine, question_seed
from capcal_lib.sampling.engines.openai import OpenAIEngine
from tests.command import run as capcal
from tests.folders import verify_run
from tests.sampling.chat_server import ChatServer, Exchange, Fault, raw, slow, status
from tests.sampling.engines.served import (
    CHOSEN,
    MODEL,
    QUESTIONS,
    SAMPLING,
    always,
    draw,
    open_at,
    requests,
    said,
)


def test_every_wanted_sample_comes_once(calm: tuple[list[Sample], list[dict[str, Any]]]) -> None:
    rows, asked = calm
    names = sorted(one.id for one in QUESTIONS[:3])
    assert [(row.question_id, row.sample_index) for row in rows] == [
        (name, i) for name in names for i in range(20)
    ]
    assert len(asked) == 60
    for row in rows:
        seed = question_seed(0, row.question_id) + row.sample_index
        assert row.response.endswith(f"({seed}).")
        assert (row.reasoning, row.finish_reason, row.prompt_tokens) == (None, "stop", 40)
        assert row.completion_tokens == min(len(row.response), SAMPLING.max_tokens)


def test_the_settings_are_those_of_the_manifest(
    calm: tuple[list[Sample], list[dict[str, Any]]],
) -> None:
    body = calm[1][0]
    said = {name: value for name, value in body.items() if name not in ("messages", "seed")}
    assert said == {
        "model": "smollm2-135m", "max_tokens": 24, "temperature": 0.8, "top_p": 1.0,
        "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0,
    }  # fmt: skip
    assert body["messages"] in [list(request.messages) for request in requests(3, 0)]


def test_what_the_protocol_does_not_know_is_said_only_where_it_is_needed() -> None:
    with ChatServer(software="someone", models=("Qwen/Qwen3-8B",)) as server:
        model = load_model("qwen3-8b")
        draw(open_at(server, model), requests(1, 1), model.sampling)
        [body] = server.asked
        assert body["model"] == "Qwen/Qwen3-8B"
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
        assert (body["temperature"], body["top_p"], body["top_k"]) == (0.7, 0.8, 20)
        assert body.keys().isdisjoint({"min_p", "repetition_penalty"})
    with ChatServer(software="someone") as server:
        engine = open_at(server)
        draw(engine, requests(1, 1))
        with pytest.raises(InputError, match="a server gives no hidden states; use --engine"):
            engine.hidden_states(requests(1, 1))
        [body] = server.asked
        assert body.keys() == {"model", "messages", "max_tokens", "temperature", "top_p", "seed"}
    with ChatServer(models=("gpt-oss-20b",)) as server:
        draw(open_at(server, load_model("gpt-oss-20b")), requests(1, 1))
        [body] = server.asked
        assert body["reasoning_effort"] == "medium"


@pytest.mark.parametrize("in_flight", [1, 16])
def test_the_rows_are_the_same_whatever_is_asked_at_a_time(
    calm: tuple[list[Sample], list[dict[str, Any]]], in_flight: int
) -> None:
    with ChatServer(fault=always(slow(0.005))) as server:
        engine = open_at(server, in_flight=in_flight)
        assert draw(engine, requests(3, 20)[::-1]) == (calm[0], [])
        assert server.most_at_once <= in_flight
        assert draw(engine, requests(3, 20), seed=1)[0] != calm[0]


def test_reasoning_is_kept_apart() -> None:
    replies = [
        {"content": "4", "reasoning_content": "2 + 2"},
        {"content": "4", "reasoning": "2 + 2"},
        {"content": "<think>So</think>4", "reasoning": "2 + 2"},
        {"content": "<think>2 + 2</think>4"},
        {"content": None, "reasoning": "2 + 2"},
        {"content": "4"},
        {"content": ""},
    ]
    ends = ["stop", "stop", "stop", "stop", "length", "stop", "length"]
    with ChatServer(
        choice=lambda index: {"message": replies[index], "finish_reason": ends[index]}
    ) as server:
        rows, _ = draw(open_at(server, in_flight=1), requests(1, 7))
    assert [(row.reasoning, row.response, row.finish_reason) for row in rows] == [
        ("2 + 2", "4", "stop"), ("2 + 2", "4", "stop"), ("2 + 2\nSo", "4", "stop"),
        ("2 + 2", "4", "stop"), ("2 + 2", "", "length"), (None, "4", "stop"), (None, "", "length"),
    ]  # fmt: skip


def test_an_answer_in_parts_is_refused() -> None:
    parts = [{"type": "text", "text": "4"}]
    with ChatServer(choice=lambda index: {"message": {"content": parts}}) as server:
        rows, [failure] = draw(open_at(server), requests(1, 1))
    assert not rows
    assert "an answer that cannot be read" in failure.reason


WHOLE = {"message": {"content": "6 x 7 is 42.</think>42"}, "finish_reason": "stop"}
CUT = {"message": {"content": "Perhaps 41. But"}, "finish_reason": "length"}
SHORT = {"message": {"content": "42"}, "finish_reason": "stop"}


@pytest.mark.parametrize("order", [[WHOLE, CUT], [CUT, CUT, WHOLE, CUT], [WHOLE, SHORT, CUT]])
def test_a_cut_reasoning_that_the_prompt_began_is_no_answer(order: list[dict[str, Any]]) -> None:
    with ChatServer(choice=lambda index: order[index]) as server:
        rows, _ = draw(open_at(server, in_flight=1), requests(1, len(order)))
    whole, cut, short = ("6 x 7 is 42.", "42"), ("Perhaps 41. But", ""), (None, "42")
    parts = {id(WHOLE): ("stop", *whole), id(CUT): ("length", *cut), id(SHORT): ("stop", *short)}
    assert [(row.finish_reason, row.reasoning, row.response) for row in rows] == [
        parts[id(reply)] for reply in order
    ]


@pytest.mark.parametrize("order", [[CUT, CUT], [CUT, SHORT]])
def test_a_cut_answer_of_a_model_that_does_not_reason_is_kept(order: list[dict[str, Any]]) -> None:
    with ChatServer(choice=lambda index: order[index]) as server:
        rows, _ = draw(open_at(server, in_flight=1), requests(1, len(order)))
    assert [row.response for row in rows] == [reply["message"]["content"] for reply in order]


def replying(pieces: list[str], message: dict[str, str | None]) -> Fault:
    """Reply with these tokens; at place i, Yes has the log-probability -i - 0.1, and " No" three
    less.
    """

    def fault(exchange: Exchange, body: dict[str, Any]) -> bool:
        assert (body["top_logprobs"], body["logprobs"], body.get("n", 1)) == (20, True, 1)
        answer = exchange.server.chat.completion(body)
        tops = [{"Yes": -i - 0.1, " No": -i - 3.1} for i in range(len(pieces))]
        places = [
            {
                "token": piece,
                "top_logprobs": [{"token": word, "logprob": value} for word, value in top.items()],
            }
            for piece, top in zip(pieces, tops, strict=True)
        ]
        answer["choices"][0] |= {"message": message, "logprobs": {"content": places}}
        answer["usage"]["completion_tokens"] = len(pieces)
        exchange.say(200, answer)
        return True

    return fault


tops = replying(["Yes", ".", "<|im_end|>"], {"content": "Yes."})
THOUGHT = ["<|channel|>", "analysis", "<|message|>", "Yes", "<|end|>", "<|start|>", "assistant"]


def test_first_token_probabilities_are_those_of_the_twenty_likeliest() -> None:
    with ChatServer(fault=always(tops)) as server:
        found, tokens = open_at(server).next_token_logprobs(
            requests(3, 0), ["Yes", "yes", " No"], SAMPLING, 0
        )
    np.testing.assert_allclose(found, 3 * [[-0.1, np.nan, -3.1]])
    assert tokens.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("pieces", "message", "place"),
    [
        (
            [*THOUGHT, "<|channel|>", "final", "<|message|>", "Yes"],
            {"content": "Yes", "reasoning": "Yes"},
            10,
        ),
        (["<think>", "Yes", "</think>", "\n\n", "No"], {"content": "No", "reasoning": "Yes"}, 4),
        (
            ["Yes", "</think>", "\n\n", "No"],
            {"content": "Yes</think>\n\nNo"},
            3,
        ),  # opened in the prompt, not parsed
        (
            ["Yes", "No"],
            {"content": "No", "reasoning": "Yes"},
            None,
        ),  # of all, and no mark where the answer begins
        (THOUGHT, {"content": None, "reasoning": "Yes"}, None),  # cut off
        (["</think>No"], {"content": "No"}, None),  # one token holds both
        (["\n", " No", ", I", " do", " not", "<|im_end|>"], {"content": "\n No, I do not"}, 1),
    ],
)
def test_probabilities_are_those_where_the_answer_begins(
    pieces: list[str], message: dict[str, str | None], place: int | None
) -> None:
    with ChatServer(fault=always(replying(pieces, message))) as server:
        found, tokens = open_at(server).next_token_logprobs(
            requests(1, 0), ["Yes", " No"], SAMPLING, 7
        )
        assert server.asked[0]["temperature"] == SAMPLING.temperature
    expected = [np.nan, np.nan] if place is None else [-place - 0.1, -place - 3.1]
    np.testing.assert_allclose(found, [expected])
    assert tokens.tolist() == [len(pieces) if place is None else place + 1]


def test_a_cut_reasoning_that_the_prompt_began_has_no_first_token() -> None:
    def fault(number: int, body: dict[str, Any]) -> Fault:
        pieces = ["No", " way", "</think>", "Yes"] if number else ["No", " way"]
        reply = replying(pieces, {"content": "".join(pieces)})

        def answer(exchange: Exchange, body: dict[str, Any]) -> bool:
            exchange.server.chat.choice = lambda _: {"finish_reason": ["length", "stop"][number]}
            return reply(exchange, body)

        return answer

    with ChatServer(fault=fault) as server:
        found, tokens = open_at(server, in_flight=1).next_token_logprobs(
            requests(2, 0), ["Yes"], SAMPLING, 0
        )
    np.testing.assert_allclose(found, [[np.nan], [-3.1]])
    assert tokens.tolist() == [2, 4]


def test_first_token_probabilities_that_are_not_given_are_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ChatServer() as server:
        assert np.isnan(
            open_at(server).next_token_logprobs(requests(1, 0), ["Yes"], SAMPLING, 0)[0]
        ).all()
    with ChatServer(fault=always(status(400, "no"))) as server:
        assert np.isnan(
            open_at(server).next_token_logprobs(requests(2, 0), ["Yes"], SAMPLING, 0)[0]
        ).all()
    assert caplog.messages == [
        "1 of 1 questions were not answered: 1 times: the server gives no log-probabilities",
        f"2 of 2 questions were not answered: 2 times: {said(400, 'no')}",
    ]


def changed(**changes: Any) -> Fault:
    """Answer well, but for these parts of the answer."""

    def answer(exchange: Exchange, body: dict[str, Any]) -> bool:
        exchange.say(200, exchange.server.chat.completion(body) | changes)
        return True

    return answer


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": None},
    ],
    ids=str,
)
def test_tokens_that_a_server_does_not_count_are_unknown(usage: object) -> None:
    with ChatServer(fault=always(changed(usage=usage))) as server:
        rows, failures = draw(open_at(server), requests(2, 3))
    assert not failures
    assert {row.prompt_tokens for row in rows} == {0}
    assert {row.completion_tokens for row in rows} == {0}


NATURAL = ["stop", "eos_token", "stop_sequence", "STOP", "end", "end_turn", "EOS", "eos", None, ""]
LIMIT = ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"]
INTERFERENCE = ["content_filter", "error", "SAFETY", "abort"]


def test_the_words_for_an_end_are_those_of_many_servers() -> None:
    ends = [*NATURAL, *LIMIT]
    with ChatServer(choice=lambda index: {"finish_reason": ends[index]}) as server:
        rows, failures = draw(open_at(server, in_flight=1), requests(1, len(ends)))
    assert not failures
    finishes = ["stop"] * len(NATURAL) + ["length"] * len(LIMIT)
    assert [row.finish_reason for row in rows] == finishes
    with ChatServer(choice=lambda index: {"finish_reason": INTERFERENCE[index]}) as server:
        rows, failures = draw(open_at(server, in_flight=1), requests(1, len(INTERFERENCE)))
    assert not rows
    assert {failure.sample_indices[0]: failure.reason for failure in failures} == {
        index: f"the server ended an answer with {end!r}" for index, end in enumerate(INTERFERENCE)
    }


@pytest.mark.parametrize(
    ("answered", "is_same"),
    [
        ("smollm2-135m", True),
        ("smollm2-135m-2025-04-14", True),
        ("someone/smollm2-135m", True),
        ("", True),
        ("smollm2-1350m", False),
        ("smollm2-135m-mini", False),
        ("other\x1b[2J", False),
    ],
)
def test_a_dated_or_prefixed_name_is_the_models_another_is_not(
    answered: str, is_same: bool
) -> None:
    with ChatServer(fault=always(changed(model=answered))) as server:
        rows, failures = draw(open_at(server), requests(3, 2))
        assert len(server.asked) == 6  # nothing was asked again
    if is_same:
        assert len(rows) == 6
    else:
        assert len(failures) == 6
        assert failures[0].reason.startswith("the server answered as another model, ")
        assert failures[0].reason.endswith("served_as")


def test_a_setting_that_the_manifest_omits_is_not_sent(calm: Any) -> None:
    model = MODEL.model_copy(update={"omit": ("seed", "top_p", "max_tokens")})
    with ChatServer() as server:
        server.completion = lambda body: changed_completion(server, body)  # type: ignore[method-assign]
        rows, failures = draw(open_at(server, model), requests(2, 3))
        assert all(body.keys().isdisjoint({"seed", "top_p", "max_tokens"}) for body in server.asked)
    assert (len(rows), failures) == (6, [])


def changed_completion(server: ChatServer, body: dict[str, Any]) -> dict[str, Any]:
    return ChatServer.completion(server, {"max_tokens": 24} | body)


def test_opening_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(models=("llama", "other\x1b[0m")) as server:
        with pytest.raises(
            InputError, match=r"lists llama, other\\x1b\[0m, not smollm2-135m; serve"
        ):
            open_at(server)
        with pytest.raises(InputError, match="not qwen3-8b or Qwen/Qwen3-8B"):
            open_at(server, load_model("qwen3-8b"))
        with pytest.raises(InputError, match=r"status 404: .*Not Found"):
            OpenAIEngine(MODEL, base_url=server.url.removesuffix("/v1"))
    with pytest.raises(InputError, match="no server answers at"):
        open_at(server)
    with pytest.raises(InputError, match="must be an address such as http"):
        OpenAIEngine(MODEL, base_url="nonsense")
    with ChatServer(key="secret") as server:
        monkeypatch.setenv("OPENAI_API_KEY", "guess")
        with pytest.raises(InputError, match=re.escape(said(401, "wrong key"))):
            open_at(server)
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        assert open_at(server).name == "smollm2-135m"
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(InputError, match="export OPENAI_BASE_URL=http"):
        check_engine(MODEL, "openai")


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (b'"smollm2-135m"', "an answer that cannot be read"),
        (b'{"data": []}', "lists no model, not smollm2-135m"),
    ],
)
def test_a_listing_without_the_model_is_refused(listing: bytes, said: str) -> None:
    with ChatServer(listing=raw(listing)) as server, pytest.raises(InputError, match=said):
        open_at(server)


def test_a_server_may_call_the_model_otherwise() -> None:
    model = MODEL.model_copy(update={"served_as": "llama3.1:8b"})
    with ChatServer(models=("smollm2-135m", "llama3.1:8b")) as server:
        assert open_at(server, model).name == "llama3.1:8b"
    with ChatServer() as server, pytest.raises(InputError, match=r"not llama3\.1:8b; serve"):
        open_at(server, model)


def run(store: Path, **options: Any) -> Any:
    return sample(
        "smollm2-135m",
        "mini-capitals",
        engine="openai",
        store=store,
        **{"k": 20, "limit": 4} | options,
    )


def test_failed_samples_stay_absent_and_are_tried_again(tmp_path: Path, served: ChatServer) -> None:
    whole = read_samples(run(tmp_path / "calm").run)
    served.fault = lambda number, body: status(400, "busy") if body["seed"] % 2 else None
    drawn = run(tmp_path / "run")
    assert set(drawn.failed) == {said(400, "busy")}
    assert drawn.new + sum(drawn.failed.values()) == 80
    assert 0 < drawn.new == len(read_samples(drawn.run)) < 80
    served.fault = lambda number, body: None
    again = run(tmp_path / "run")
    assert (again.present, again.new, again.failed) == (drawn.new, 80 - drawn.new, {})
    assert read_samples(again.run).equals(whole)


def own_model(folder: Path, name: str, **changes: object) -> None:
    place = folder / "models" / f"{name}.yaml"
    place.parent.mkdir(exist_ok=True)
    fields = {"name": name, "engine": "openai", "prompt_style": "short"} | changes
    limits = {"temperature": 1.0, "max_tokens": 24, "context_tokens": 4096}
    place.write_text(json.dumps(fields | {"sampling": limits}))


def test_two_models_that_a_server_calls_otherwise_are_two_runs(
    tmp_path: Path, served: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    served.models = ("llama3.1:8b", "other", "srv")
    weights = {"weights": [{"hub": "a/b", "revision": 40 * "0"}]}
    keys = {}
    for served_as, changes in {
        "llama3.1:8b": weights,
        "other": {},
        "srv": {"served_as": None},
        "srv (its own seed, top_p)": {"served_as": None, "omit": ["seed", "top_p"]},
    }.items():
        own_model(tmp_path, "srv", **{"served_as": served_as} | changes)
        drawn = sample("srv", "mini-capitals", k=2, limit=2, store=tmp_path / "store")
        assert (drawn.new, drawn.present, drawn.failed) == (4, 0, {})
        identity = drawn.run.identity
        assert identity.weights == f"served: {served_as}"
        assert drawn.run.record.made_with["server"] == served.url
        assert not verify_run(drawn.run).problems
        keys[identity.key] = served_as
    assert len(keys) == 4


def test_a_failed_verbalized_confidence_is_missing_and_asked_again(
    tmp_path: Path, served: ChatServer
) -> None:
    folder = run(tmp_path, k=1).run.folder
    served.choice = lambda index: {"message": {"content": "\\boxed{0.7}"}}
    bad = CHOSEN[2].text
    served.fault = lambda number, body: (
        status(400) if bad in body["messages"][-1]["content"] else None
    )
    found = {
        one.question_id: one.confidence
        for one in verbalized(open_at(served), MODEL, CHOSEN, seed=0)
    }
    np.testing.assert_array_equal([found[one.id] for one in CHOSEN], [0.7, 0.7, np.nan, 0.7])
    assert np.isnan(estimate(Run(folder), "verbalized", engine="openai")["confidence"]).sum() == 1
    served.fault = lambda number, body: None
    asked = len(served.asked)
    assert estimate(Run(folder), "verbalized", engine="openai")["confidence"].tolist() == [
        0.7,
        0.7,
        0.7,
        0.7,
    ]
    assert [body["max_tokens"] for body in served.asked[asked:]].count(24) == 1


def test_one_refused_question_leaves_the_p_true_of_the_others(
    tmp_path: Path, served: ChatServer
) -> None:
    folder = run(tmp_path, k=1).run.folder
    bad = CHOSEN[2].text
    served.fault = lambda number, body: (
        status(400) if bad in body["messages"][-1]["content"] else tops
    )
    found = estimate(Run(folder), "p-true", engine="openai")
    assert found.index[found["confidence"].isna()].tolist() == [CHOSEN[2].id]
    served.fault = always(tops)
    assert estimate(Run(folder), "p-true", engine="openai")["confidence"].notna().all()


def test_the_command_says_what_failed_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(number: int, body: dict[str, Any]) -> Fault | None:
        return (
            status(400, "not [bold]this[/bold]")
            if CHOSEN[0].text in body["messages"][-1]["content"]
            else None
        )

    asked = "sample --model smollm2-135m --dataset mini-capitals --engine openai --k 20 --limit 4"
    command = (*asked.split(), "--store", tmp_path)
    with ChatServer(fault=refuse) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ended, out, err = capcal(monkeypatch, capsys, *command)
        assert ended == 1
        assert "60 samples drawn, 0 already there" in out
        assert "20 samples failed; the same command tries them again" in err
        assert f"20 failed: {said(400, 'not [bold]this[/bold]')}\n" in err
        server.fault = lambda number, body: status(400, f"no {body.get('seed')}")
        ended, _, err = capcal(monkeypatch, capsys, *command)
        assert ended == 1
        assert "20 samples failed" in err
        assert len(err.splitlines()) <= 11  # however many reasons a server gives
        one = (*asked.replace("--k 20 --limit 4", "--k 1 --limit 1").split(), "--store")
        ended, out, _ = capcal(monkeypatch, capsys, *one, tmp_path / "none")
        assert (ended, out) == (1, ""), "nothing was drawn"
        server.fault = lambda number, body: None
        ended, out, _ = capcal(monkeypatch, capsys, *command)
        assert ended == 0
        assert "20 samples drawn, 60 already there" in out
    ended, out, err = capcal(monkeypatch, capsys, *command, "--k", 21)
    assert (ended, out) == (2, "")
    assert err.startswith(f"capcal: no server answers at {server.url}: ")
    assert len(err.splitlines()) == 1
    monkeypatch.delenv("OPENAI_BASE_URL")
    ended, _, err = capcal(monkeypatch, capsys, *command)
    assert ended == 2
    assert "OPENAI_BASE_URL" in err
    with ChatServer(key="right") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "wrong-key")
        ended, out, err = capcal(monkeypatch, capsys, *command, "--k", 21)
    refused = f"{server.url} refuses access: {said(401, 'wrong key')}; check OPENAI_API_KEY"
    assert (ended, out, err) == (2, "", f"capcal: {refused}\n")


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({"models": ("llama",)}, "lists llama, not smollm2-135m"),
        ({"listing": status(404)}, "no server answers at"),
        ({"fault": always(status(401))}, "refuses access"),  # which lists its models to anybody
    ],
)
def test_a_refused_command_leaves_no_empty_run(
    server: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(**server) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        with pytest.raises(InputError, match=message):
            sample(MODEL.name, "mini-capitals", k=1, limit=2, engine="openai", store=tmp_path)
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.mark.skipif("vllm" in sys.modules, reason="vLLM is there")
def test_a_model_for_vllm_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from importlib.util import find_spec

    if find_spec("vllm"):
        pytest.skip("vLLM is there")
    asked = "sample --model gpt-oss-20b --dataset gsm8k --k 1 --store"
    ended, out, err = capcal(monkeypatch, capsys, *asked.split(), tmp_path)
    assert (ended, out) == (2, "")
    assert err == (
        "capcal: 'gpt-oss-20b' runs with vllm, which needs vllm, not installed; run: pip "
        "install -e '.[vllm]'; or use a server: --engine openai, with its address in "
        "OPENAI_BASE_URL\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_judge_may_have_a_server_of_its_own(served: ChatServer) -> None:
    with ChatServer(models=("judge",)) as other:
        judge = MODEL.model_copy(update={"name": "judge"})
        engine = open_engine(judge, "openai", url=other.url, in_flight=3)
        rows = [row for group in engine.sample(requests(2, 4), SAMPLING, 0) for row in group]  # type: ignore[union-attr]
        assert len(rows) == 8
        assert len(other.asked) == 8
    assert not served.asked
    with pytest.raises(InputError, match="in_flight must be at least 1; got 0"):
        open_engine(MODEL, "openai", in_flight=0)


@pytest.mark.parametrize(("cut", "says"), [(2, False), (3, True)])
def test_commands_say_that_more_than_a_tenth_of_the_answers_was_cut(
    cut: int,
    says: bool,
    tmp_path: Path,
    served: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    served.choice = lambda index: {"finish_reason": "length" if index < cut else "stop"}
    asked = "sample --model smollm2-135m --dataset mini-capitals --engine openai --k 5 --limit 4"
    ended, _, err = capcal(monkeypatch, capsys, *asked.split(), "--store", tmp_path)
    assert ended == 0
    assert err.endswith("3 of 20 answers reached max_tokens without an end\n") == says
    _, out, _ = capcal(monkeypatch, capsys, "status", "--store", tmp_path)
    assert ("3 of 20 answers reached max_tokens without an end" in out) == says
