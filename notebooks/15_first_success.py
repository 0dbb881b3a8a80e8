# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What a first success costs
#
# Whoever asks until an answer is right pays for every failure; this page shows how many attempts a confidence predicts,
# why the average may be infinite, and what a solved question costs in tokens.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import (
    fit_concentration,
    pass_at_k,
    simulate_pass_at_k,
)

# %% tags=["hide-input"]
from capcal_lib.book import notebook, style, tables
from capcal_lib.grading import read_verdicts
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import mean_interval
from capcal_lib.probes import describe_probes, training_data
from capcal_lib.results import describe_runs, load_results, subjects
from capcal_lib.runs import find_run, read_samples

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval)
results = results[results["total"] > 1]

# %% tags=["hide-input"]
probes = {name: load_dataset(name).probe for name in data.index}
probed = [
    name
    for name, probe in probes.items()
    if probe in results and results.loc[name, probe].notna().any()
]
lacking = {"probes": "No probe can be trained for these data sets."}
notebook.about(model, data, lacking={} if probed else lacking)

# %% tags=["hide-input"]
CONSTANT, PLUG_IN = "Constant, posterior", "Probe, plug-in"
POSTERIOR, ASKED = "Probe, posterior", ("Verbalized confidence", "P(True)")


def learned(dataset):
    """Learn nu, and a constant confidence with its own, from training."""
    manifest = load_dataset(dataset)
    run = find_run(runs, model, dataset, manifest.training_split)
    seen, _ = training_data(run)
    c, n = seen["correct"], seen["total"]
    mean = np.full(len(c), c.sum() / n.sum())
    nu = describe_probes(runs, model).loc[manifest.probe, "concentration"]
    return nu, mean[0], fit_concentration(mean, c, n)


# %% tags=["hide-input"]
def believed(dataset):
    """Return each method's confidences with their concentration."""
    own, (nu, mean, mean_nu) = results.loc[[dataset]], learned(dataset)
    s = own[probes[dataset]]
    found = {CONSTANT: (pd.Series(mean, own.index), mean_nu)}
    found |= {PLUG_IN: (s, np.inf), POSTERIOR: (s, nu)}
    for name in ASKED:
        if name in own and own[name].notna().any():
            found[name] = own[name].fillna(0.5), np.inf
    return found


# %% tags=["hide-input"]
def measured_tries(own, limit):
    """Return each question's expected tries up to a limit, exactly."""
    ks = np.arange(1, limit + 1)
    return limit - pass_at_k(own["correct"], own["total"], ks)[:, :-1].sum(1)


def expected_tries(s, nu, limit):
    """Return what each confidence expects of them."""
    ks = np.arange(1, limit + 1)
    solved = simulate_pass_at_k(s, ks, concentration=nu)
    return limit - solved[:, :-1].sum(1)


# %% tags=["hide-input"]
def tries_quantile(s, nu, share, most=1000):
    """Return how many tries solve each question with the chance share."""
    ks = np.arange(1, most + 1)
    enough = simulate_pass_at_k(s, ks, concentration=nu) >= share - 1e-12
    return np.where(enough.any(axis=1), ks[enough.argmax(axis=1)], np.inf)


# %% tags=["remove-cell"]
# needs probes
spread = (results["correct"] / results["total"]).groupby("dataset").var()
shown = max(probed, key=spread.get)
own, title = results.loc[[shown]], load_dataset(shown).title
limit, methods = int(own["total"].min()), believed(shown)
evidence, groups = data["evidence"].iloc[0], subjects(results)

# %% tags=["remove-cell"]
# needs probes
tries, errors = {}, {}
for name in probed:
    each = results.loc[[name]]
    most = int(each["total"].min())
    tries[name] = pd.DataFrame({"measured": measured_tries(each, most)})
    for method, (s, nu) in believed(name).items():
        expected = expected_tries(s, nu, most)
        tries[name][method] = expected
    table = tries[name].set_index(each.index)
    off = table.drop(columns="measured").sub(table["measured"], axis="index")
    errors[name] = (off / most) ** 2

# %% tags=["remove-cell"]
# needs probes
rows = []
for name, error in errors.items():
    simple = error[error.columns.intersection([CONSTANT, *ASKED])]
    best = simple.mean().idxmin()
    for method in (PLUG_IN, POSTERIOR):
        gain = error[best] - error[method]
        rng, clusters = np.random.default_rng(seed), groups[gain.index]
        ends = mean_interval(gain, rng=rng, clusters=clusters, bounds=(-1, 1))
        rows.append(["Cost to a first success", method, name, best, *ends[:3]])
heads = ["application", "method", "dataset", "against"]
comparison = pd.DataFrame(rows, columns=[*heads, "estimate", "low", "high"])

# %% tags=["remove-cell"]
# needs probes
mine = comparison[comparison["method"] == POSTERIOR]
means = tries[shown].mean()
notebook.glue(sets=len(mine), shown=title, limit=limit)
notebook.glue(better=int((mine["low"] > 0).sum()))
notebook.glue(worse=int((mine["high"] < 0).sum()))
notebook.glue(measured=means["measured"], posterior=means[POSTERIOR])
notebook.glue(plug_in=means[PLUG_IN])

# %% [markdown] needs="probes"
# On {glue:text}`shown`, a question takes {glue:text}`measured:.0f` attempts on average, giving up after
# {glue:text}`limit`. The confidence of the tuned linear probe, read as the mean of a
# {term}`posterior <posterior confidence>`, expects {glue:text}`posterior:.0f`; taken at its word,
# {glue:text}`plug_in:.0f`. Question by question, the posterior predicts the attempts significantly better than the
# best simple rule (a constant, or asking the model) on {glue:text}`better` of {glue:text}`sets` data sets, and
# significantly worse on {glue:text}`worse`.

# %% tags=["remove-cell"]
# needs probes
ks = np.unique(np.geomspace(1, limit, 20).round().astype(int))
solved = pass_at_k(own["correct"], own["total"], ks).mean(axis=0)
paid = [measured_tries(own, k).mean() for k in ks]
curves = {"Measured": paid / solved}
for method in (CONSTANT, PLUG_IN, POSTERIOR):
    s, nu = methods[method]
    paid = [expected_tries(s, nu, k).mean() for k in ks]
    solved = simulate_pass_at_k(s, ks, concentration=nu).mean(axis=0)
    curves[method] = paid / solved

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Attempts paid for each solved question, against the number of attempts after which one gives up: from the samples, and as confidences expect it. Probe: tuned linear probe, taken at its word (plug-in) or as the mean of a posterior.", "name": "fig-first-success"}, "image": {"alt": "Line plot of attempts a solved question against the limit of attempts, both logarithmic. The posterior stays near the measured curve; the plug-in falls below it as the limit grows."}} evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs probes
lines = pd.DataFrame(curves, index=pd.Index(ks, name="limit"))
colors = [style.INK, "#be8a1d", "#2b6450", "#46a281"]
axes = sns.lineplot(lines, palette=colors, dashes=False)
axes.set(xscale="log", yscale="log", title=title)
axes.set(
    xlabel="attempts before giving up", ylabel="attempts a solved question"
)
axes.set_xticks(ticks := [k for k in (1, 4, 16, 64) if k <= limit], ticks)
marks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
marks = [k for k in marks if lines.min(axis=None) <= k <= lines.max(axis=None)]
axes.set_yticks(marks, marks)
axes.minorticks_off()
style.label_lines(axes)

# %% [markdown]
# ## One question
#
# If every attempt succeeds with probability $s$, the first success takes $1/s$ attempts on average. But a confidence
# does not know $\mu$. Under a posterior with parameters $a = s\nu$ and $b = (1-s)\nu$ the average of $1/\mu$ is
#
# $$
# \mathbb{E}\left[\frac{1}{\mu}\right] = \frac{\nu - 1}{s\nu - 1} \quad \text{if } s\nu > 1,
# \text{ and infinite otherwise.}
# $$
#
# Infinite is no accident of the formula: a small chance that the question is next to hopeless outweighs all the rest,
# because one would try for ever. So the number to plan with is *censored*: giving up after some number of attempts, how
# many are made? Or it is a quantile, which is finite whatever the average is.


# %%
def plan(s, nu):
    """Describe how many attempts a first success takes."""
    mean = (1 - 1 / nu) / (s - 1 / nu) if s * nu > 1 else np.inf
    marks = (tries_quantile([s], nu, q) for q in (0.5, 0.9))
    known = (expected_tries([s], nu, 100), *marks)
    return [mean, *(float(each[0]) for each in known)]


# %%
heads = ["mean", "mean, giving up after 100", "median", "90 %"]
sure = {nu: plan(0.3, nu) for nu in (np.inf, 10, 2)}
pd.DataFrame(sure, heads).T.rename_axis("nu").round(1)

# %% [markdown]
# The less sure a confidence of 0.3 is, the lower the median and the longer the tail: easy questions are solved at once,
# hard ones never.
#
# The censored average needs no new theory. Attempt $k+1$ is made if $k$ have failed, so it is the sum of the chances to
# be unsolved, one minus pass@$k$:

# %%
unsolved = 1 - simulate_pass_at_k([0.3], np.arange(1, 100), concentration=2)
assert np.isclose(1 + unsolved.sum(), plan(0.3, 2)[1])

# %% [markdown] needs="probes"
# ## What the samples say
#
# The same sum over the measured pass@$k$ is unbiased. The average would be infinite, under the posterior of the probe,
# for {glue:text}`endless:.0%` of the questions of {glue:text}`shown`, and it is infinite in truth wherever a question
# cannot be solved.

# %% tags=["hide-input"] label="first-success-tries" evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs probes
s, nu = methods[POSTERIOR]
endless = s * nu <= 1
notebook.glue(endless=endless.mean())
table = pd.DataFrame({name: each.mean() for name, each in tries.items()}).T
most = results["total"].groupby("dataset").min()
table.insert(0, "giving up after", most)
tables.show(
    table.rename(index=lambda name: load_dataset(name).title).rename_axis(
        "data set"
    ),
    "Attempts a question, as measured and as expected.",
    digits=1,
    evidence=evidence,
)

# %% tags=["hide-input"] label="first-success-comparison" evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs probes
wide = comparison.assign(dataset=comparison["dataset"].map(data["title"]))
wide = wide.rename(columns={"dataset": "data set", "against": "compared with"})
tables.show(
    wide.drop(columns="application"),
    "Squared error of the attempts, as a share of the limit: how much less "
    "than by the best simple rule (higher is better).",
    digits=3,
    evidence=evidence,
)

# %% [markdown] needs="probes"
# A quantile is a promise: so many attempts solve the question with such a chance. Where the recorded samples suffice to
# see it, it can be checked, by pass@$k$ at each question's own $k$. On {glue:text}`shown`:

# %% tags=["hide-input"] label="first-success-quantiles" evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs probes
kept = []
for method, share in [(m, q) for m in (PLUG_IN, POSTERIOR) for q in (0.5, 0.9)]:
    s, nu = methods[method]
    k = tries_quantile(s, nu, share)
    seen = (k <= own["total"]).to_numpy()
    promised = simulate_pass_at_k(s[seen], k[seen], concentration=nu)
    c, n = own.loc[seen, "correct"], own.loc[seen, "total"]
    ends = [np.diag(t).mean() for t in (promised, pass_at_k(c, n, k[seen]))]
    kept.append([method, f"{share:.0%}", seen.sum(), *ends])
heads = ["method", "quantile", "questions", "promised", "solved"]
tables.show(
    pd.DataFrame(kept, columns=heads),
    f"Questions of {title} solved within the attempts of a quantile.",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# ## In tokens
#
# Last, the samples in the order in which they were drawn: up to the first correct one, and no further. What is paid for
# the questions that stay unsolved counts too. A dash stands where none is solved.


# %% tags=["hide-input"]
def to_first_success(run):
    """Return each question's attempts and tokens, and whether it is solved."""
    names = ["question_id", "sample_index"]
    samples = read_samples(run, ["completion_tokens"]).set_index(names)
    right = read_verdicts(run).set_index(names)["verdict"] == "correct"
    samples["solved"] = right.reindex(samples.index, fill_value=False)
    by_question = samples["solved"].groupby("question_id")
    before = by_question.cumsum() - samples["solved"]
    made = samples[before == 0].assign(attempts=1).groupby("question_id")
    return made[["attempts", "completion_tokens", "solved"]].sum()


# %% tags=["hide-input"]
def tokens_a_success(made):
    """Return tokens a solved question with their interval (a ratio's)."""
    tokens, solved = made["completion_tokens"], made["solved"]
    if not solved.any():
        return [np.nan] * 3
    cost = tokens.sum() / solved.sum()
    terms = cost + (tokens - cost * solved) / solved.mean()
    return mean_interval(terms, seed=seed)[:3]


# %% tags=["hide-input"] label="first-success-tokens" evidence=["measured"] reads=["samples", "verdicts"]
# needs samples
made = {
    run["title"]: to_first_success(run["run"]) for _, run in data.iterrows()
}
means = pd.concat(made, names=["data set"]).groupby("data set", sort=False)
table = means[["solved", "attempts"]].mean()
heads = ["tokens a solved question", "low", "high"]
table[heads] = [tokens_a_success(each) for each in made.values()]
tables.show(
    table.rename(columns={"attempts": "attempts a question"}),
    "What a first success costs, giving up where the recorded samples end.",
    solved="{:.1%}",
    digits=0,
    evidence=data["evidence"].iloc[0],
)

# %% [markdown]
# ## Summary
#
# - The average number of attempts to a first success is infinite as soon as hopeless questions are not excluded: plan
#   with a limit, or with a quantile.
# - A confidence taken at its word promises a first success too soon; as a posterior it knows the tail.
# - What a solved question costs includes what the unsolved ones cost.
#
# ## Exercises
#
# **1 (easy).** How many attempts does a question with $\mu = 0.2$ take on average, and how many until it is solved with
# probability one half? *Hint:* why do they differ?

# %% tags=["hide-cell", "solution"]
mean, _, median, _ = plan(0.2, np.inf)
mean, median  # the tail counts in the mean

# %% [markdown]
# **2 (medium).** Draw $\mu$ from a Beta distribution with parameters 0.6 and 1.4, many times, and average $1/\mu$. Does
# the average settle as more are drawn? *Hint:* $s = 0.3$, $\nu = 2$.

# %% tags=["hide-cell", "solution"]
mu = np.random.default_rng(seed).beta(0.6, 1.4, 10**6)
[round((1 / mu[:size]).mean()) for size in (10**2, 10**4, 10**6)]  # it grows

# %% [markdown]
# **3 (hard).** A solved question is worth as much as 25 attempts. After how many failures should one give up on a
# question with $s = 0.3$ and $\nu = 2.5$? *Hint:* after $k$ failures the next attempt succeeds with probability
# $s\nu/(\nu + k)$.

# %% tags=["hide-cell", "solution"]
chance = 0.75 / (2.5 + np.arange(50))
stop = int(np.argmax(25 * chance < 1))  # worth less than it costs
ks = range(1, 50)
cost = [expected_tries([0.3], 2.5, k)[0] for k in ks]
worth = 25 * simulate_pass_at_k([0.3], ks, concentration=2.5)[0]
assert ks[np.argmax(worth - cost)] == stop
stop
