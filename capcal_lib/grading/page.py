"""The page on which a person settles what two graders say: one file that needs nothing else, in light and dark."""

import base64
import hashlib
import json
from html import escape
from pathlib import Path

from capcal_lib.errors import InputError
from capcal_lib.grading.cross_check import Pair, SecondLook, label_row
from capcal_lib.metrics.intervals import Interval

MOST_LISTED = 500  # disagreements, the most frequent first
LONGEST_TEXT = 1_500  # characters of a question or response; the middle is left out
MOST_ALIASES = 12

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2326; --soft: #5a666b; --ground: #fbfcfc; --card: #ffffff;
  --line: #d8dfe1; --accent: #17616b; --right: #00543d; --right-ground: #d9f0e8; --wrong: #7a2e12;
  --wrong-ground: #fae5dc; --none: #4d4d4d; --none-ground: #e9ebec; }
@media (prefers-color-scheme: dark) { :root { --ink: #e2e8ea; --soft: #9fadb2; --ground: #14191b; --card: #1b2225;
  --line: #334045; --accent: #7cc6cf; --right: #8fe3c6; --right-ground: #0f3a2e; --wrong: #f6b79d;
  --wrong-ground: #4a2416; --none: #c8cdd0; --none-ground: #30383b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 7rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { margin: 2.5rem 0 .5rem; font-size: 1.25rem; }
p { max-width: 44rem; } .soft { color: var(--soft); }
dl.rates { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0; }
dl.rates div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .9rem; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; font-variant-numeric: tabular-nums; }
dl.rates dd { font-size: 1.1rem; font-weight: 600; }
article { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .9rem 1.1rem;
  margin: .9rem 0; }
article.settled { border-left: .3rem solid var(--accent); }
article header { display: flex; gap: .75rem; justify-content: space-between; color: var(--soft); font-size: .85rem;
  overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; font: .92rem/1.45 ui-monospace, monospace; }
.question { font-family: inherit; font-size: 1rem; }
.response { border-left: .2rem solid var(--line); padding-left: .7rem; max-height: 16rem; overflow: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { font-weight: 500; color: var(--soft); white-space: nowrap; width: 8.5rem; }
td code { font: .92rem ui-monospace, monospace; }
.verdict { padding: .05rem .55rem; border-radius: 1rem; white-space: nowrap; font-size: .88rem; color: var(--none);
  background: var(--none-ground); }
.correct { color: var(--right); background: var(--right-ground); }
.incorrect { color: var(--wrong); background: var(--wrong-ground); }
fieldset { border: 0; padding: .3rem 0 0; margin: 0; display: flex; flex-wrap: wrap; gap: 1.1rem; }
label { cursor: pointer; } input { accent-color: var(--accent); }
#bar { position: fixed; inset: auto 0 0 0; background: var(--card); border-top: 1px solid var(--line);
  padding: .7rem 1.25rem; display: flex; gap: 1rem; justify-content: center; align-items: center; }
button { font: inherit; padding: .4rem 1rem; border-radius: .4rem; border: 1px solid var(--accent); cursor: pointer;
  background: var(--accent); color: var(--ground); } button:disabled { opacity: .45; cursor: default; }
"""

_SCRIPT = """
const cards = [...document.querySelectorAll("article")], key = document.body.dataset.key;
const button = document.querySelector("button"), said = document.querySelector("#said");
let kept = {};
try { kept = JSON.parse(localStorage.getItem(key)) || {}; } catch (error) { }
function settled() {
  return cards.filter(card => card.querySelector("input:checked"));
}
function count() {
  const done = settled();
  for (const card of cards) card.classList.toggle("settled", done.includes(card));
  said.textContent = done.length + " of " + cards.length + " settled";
  button.disabled = !done.length;
}
for (const card of cards) {
  const row = card.dataset.row;
  for (const input of card.querySelectorAll("input")) {
    input.checked = kept[row] === input.value;
    input.addEventListener("change", () => {
      kept[row] = input.value;
      try { localStorage.setItem(key, JSON.stringify(kept)); } catch (error) { }
      count();
    });
  }
}
button.addEventListener("click", () => {
  const rows = settled().map(card => {
    const row = JSON.parse(card.dataset.row);
    row.correct = JSON.parse(card.querySelector("input:checked").value);
    return JSON.stringify(row) + "\\n";
  });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(rows, { type: "application/jsonl" }));
  link.download = "labels.jsonl";
  link.click();
  URL.revokeObjectURL(link.href);
});
count();
"""


def write_page(look: SecondLook, path: str | Path) -> int:
    """Write the page, and return how many pairs it lists.

    All text of questions and models is escaped and bounded; the page may load nothing, and run no script but its own.

    Raises
    ------
    InputError
        Where it cannot be written.
    """
    try:
        Path(path).write_text(page(look), encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    return min(len(look.disagreements), MOST_LISTED) + len(look.agreements)


def page(look: SecondLook) -> str:
    """Return the page as one HTML document."""
    identity, listed = look.identity, look.disagreements[:MOST_LISTED]
    run = f"{identity.model} on {identity.dataset} ({identity.split})"
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    left_out = len(look.disagreements) - len(listed)
    rest = f" The {len(listed)} most frequent of {len(look.disagreements):,} are listed." if left_out else ""
    differing = sum(pair.samples for pair in look.disagreements)
    cards = [_card(pair, f"d{number}") for number, pair in enumerate(listed)]
    agreed = [_card(pair, f"a{number}") for number, pair in enumerate(look.agreements)]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Two graders: {escape(run)}</title><style>{_STYLE}</style></head>
<body data-key="capcal {escape(identity.key)} {escape(look.grader_version)}">
<h1>Two graders: {escape(run)}</h1>
<p class="soft">Run {escape(identity.key)}, grader version {escape(look.grader_version)}.</p>
<dl class="rates">
<div><dt>samples</dt><dd>{look.samples:,}</dd></div>
<div><dt>distinct answers</dt><dd>{look.pairs:,}</dd></div>
<div><dt>disagreement, of distinct answers</dt><dd>{_share(look.by_pair)}</dd></div>
<div><dt>disagreement, of samples</dt><dd>{_share(look.by_sample)}</dd></div>
</dl>
<p>Two graders that share no code read every response. Where only one of them calls it correct, one of the two is wrong:
say which, and download <code>labels.jsonl</code>. Please settle the agreements further down as well. They tell about
the errors that both make, and without them the first grader's sensitivity and specificity are not known.</p>
<h2>Disagreements: {len(look.disagreements):,}, {differing:,} samples</h2>
<p class="soft">The most frequent first.{rest}</p>
{"".join(cards) or "<p>There are none.</p>"}
<h2>A random sample of agreements: {len(look.agreements)}</h2>
<p class="soft">Drawn with chances by their samples; each stands for as many samples as its row says.</p>
{"".join(agreed) or "<p>There are none.</p>"}
<div id="bar"><span id="said"></span><button type="button">Download labels.jsonl</button></div>
<script>{_SCRIPT}</script></body></html>
"""


def _share(share: Interval) -> str:
    return f"{share.estimate:.2%} [{share.low:.2%}, {share.high:.2%}]"


def _short(text: str, longest: int = LONGEST_TEXT) -> str:
    """Escape a text, its middle left out where it is long: the beginning tells what it is, the end what it says."""
    if len(text) > longest:
        left_out = len(text) - longest
        text = f"{text[: longest // 3]}\n[... {left_out:,} characters ...]\n{text[-longest * 2 // 3 :]}"
    return escape("".join(mark if mark.isprintable() or mark == "\n" else "�" for mark in text))


def _card(pair: Pair, name: str) -> str:
    answer = pair.question.answer
    aliases = ", ".join(answer.aliases[:MOST_ALIASES]) + (" ..." if len(answer.aliases) > MOST_ALIASES else "")
    rows = [("right answer", f"<code>{_short(answer.gold, 500)}</code>")]
    if aliases:
        rows.append(("also right", _short(aliases, 600)))
    for title, verdict in (("first grader", pair.first), ("second grader", pair.second)):
        extracted = f" <code>{_short(verdict.extracted, 500)}</code>" if verdict.extracted else ""
        rows.append(
            (
                title,
                f'<span class="verdict {verdict.verdict}">{verdict.verdict.replace("_", " ")}</span>{extracted} '
                f'<span class="soft">{_short(verdict.reason, 200)}</span>',
            )
        )
    table = "".join(f"<tr><th>{title}</th><td>{content}</td></tr>" for title, content in rows)
    choices = "".join(
        f'<label><input type="radio" name="{name}" value="{value}"> {text}</label>'
        for value, text in (("true", "right"), ("false", "wrong"), ("null", "cannot tell"))
    )
    number = f"{pair.samples:,} sample{'s' * (pair.samples != 1)}"
    stands = "" if pair.disagreement else f", stands for {pair.weight:,.0f}"
    return f"""<article data-row="{escape(json.dumps(label_row(pair)))}">
<header><span>{_short(pair.question.id, 200)} &middot; {answer.kind}</span><span>{number}{stands}</span></header>
<pre class="question">{_short(pair.question.text)}</pre>
<pre class="response">{_short(pair.response)}</pre>
<table>{table}</table>
<fieldset>{choices}</fieldset></article>
"""
