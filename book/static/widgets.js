/* The book's widgets: plain scripts without a server. Each reads the JSON that its page holds, takes the place of the
   static table beside it, works with the keyboard, and says its result in a live region. */
(() => {
  "use strict";

  const make = (tag, properties = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name === "style") for (const [key, rule] of Object.entries(value)) node.style.setProperty(key, rule);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };
  const button = (text, action) => make("button", { type: "button", onclick: action }, text);
  const digits = (value, places = 2) => (Number.isFinite(value) ? value.toFixed(places).replace("-", "−") : "–");
  const percent = (value) => `${Math.min(100, Math.max(0, 100 * value))}%`;
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const range = (length) => Array.from({ length }, (_, place) => place);

  /* A labelled control; the value of a slider stands beside it. */
  const choice = (label, options, action, chosen = options[0][0]) => {
    const select = make("select", { onchange: () => action(select.value) });
    for (const [value, text] of options) select.append(make("option", { value, selected: value === chosen }, text));
    return make("label", {}, `${label} `, select);
  };
  const slider = (label, { from, to, step = 1, value, show = String }, action) => {
    const said = make("output", {}, show(value));
    const input = make("input", { type: "range", min: from, max: to, step, value });
    input.addEventListener("input", () => {
      said.textContent = show(Number(input.value));
      action(Number(input.value));
    });
    return make("label", { class: "cw-slider" }, make("span", {}, label), input, said);
  };

  /* A number between 0 and 1 on a line: an interval, a dot, and what it is called. */
  const track = (label, value, { low, high, color, text, ticks = [] } = {}) => {
    const line = make("div", { class: "cw-track", "aria-hidden": "true" });
    for (const tick of ticks) line.append(make("i", { class: "cw-tick", style: { left: percent(tick) } }));
    if (low !== undefined)
      line.append(
        make("i", { class: "cw-interval", style: { left: percent(low), width: percent(high - low), "--ink": color } }),
      );
    if (Number.isFinite(value)) line.append(make("i", { class: "cw-dot", style: { left: percent(value), "--ink": color } }));
    return make("div", { class: "cw-row" }, make("span", {}, label), line, make("b", {}, text ?? digits(value)));
  };

  /* Fresh answers to one question: the capability target settles, the response target does not. */
  const coin = (data) => {
    let asked = 0;
    const middle = Math.floor(data.questions.length / 2);
    let question = data.questions[middle];
    const tosses = make("div", { class: "cw-tosses", "aria-hidden": "true" });
    const bars = make("div");
    const said = make("p", { role: "status", "aria-live": "polite" });
    const draw = () => {
      const seen = [...question.verdicts].slice(0, asked);
      const right = seen.filter((verdict) => verdict === "1").length;
      const last = seen.at(-1);
      const [low, high] = asked ? question.intervals[asked - 1] : [0, 1];
      tosses.replaceChildren(...seen.map((verdict) => make("i", { class: verdict === "1" ? "right" : "wrong" })));
      bars.replaceChildren(
        track("response target", asked ? Number(last) : NaN, { text: last ?? "–", color: data.colors.response }),
        track("capability target μ̂", asked ? right / asked : NaN, { low, high, color: data.colors.capability }),
      );
      said.textContent = asked
        ? `Answer ${asked}: “${question.answers[asked - 1]}” is ${last === "1" ? "correct" : "not correct"}, so the ` +
          `response target is ${last}. ${right} of ${asked} answers are correct: μ̂ = ${digits(right / asked)}, ` +
          `95 % interval ${digits(low)} to ${digits(high)}.`
        : "Not asked yet: any expected accuracy from 0 to 1 is possible.";
    };
    const ask = (times) => {
      asked = Math.min(asked + times, question.verdicts.length);
      draw();
    };
    const restart = () => {
      asked = 0;
      draw();
    };
    const names = data.questions.map(({ text }, place) => [place, text]);
    draw();
    return [
      choice("Question", names, (place) => {
        question = data.questions[place];
        restart();
      }, middle),
      make(
        "div",
        { class: "cw-buttons" },
        button("Ask once", () => ask(1)),
        button("Ask 10 times", () => ask(10)),
        button("Ask 100 times", () => ask(100)),
        button("Start again", restart),
      ),
      bars,
      tosses,
      said,
    ];
  };

  /* A term a question: a squared distance from the share that was correct, without what sampling adds to it. */
  const terms = (distance, correct, total, corrected) =>
    range(correct.length).map((place) => {
      const share = correct[place] / total[place];
      const noise = corrected ? (share * (1 - share)) / (total[place] - 1) : 0;
      return distance(share, place) - noise;
    });
  const brier = (confidence, correct, total, corrected = true) =>
    terms((share, place) => (confidence(place) - share) ** 2, correct, total, corrected);
  const uniform = (correct, total, corrected = true) => // the mean over confidences from 0 to 1
    terms((share) => 1 / 3 - share + share ** 2, correct, total, corrected);

  /* Ten guesses of the reader's, scored beside the model's own confidences. */
  const guess = (data) => {
    const guesses = data.questions.map(() => 0.5);
    const correct = data.questions.map((question) => question.correct);
    const total = data.questions.map((question) => question.total);
    const result = make("div");
    const said = make("p", { role: "status", "aria-live": "polite" });
    const rows = data.questions.map(({ text }, place) =>
      slider(text, { from: 0, to: 100, value: 50, show: (value) => `${value} %` }, (value) => {
        guesses[place] = value / 100;
      }),
    );
    const compare = () => {
      const scores = [
        ["You", mean(brier((place) => guesses[place], correct, total)), "#17616b"],
        ["Uniform random", mean(uniform(correct, total)), data.colors["Uniform random"]],
        ["Constant: always one half", mean(brier(() => 0.5, correct, total)), data.colors.constant],
        ...Object.entries(data.methods).map(([name, values]) => [
          name,
          mean(brier((place) => values[place], correct, total)),
          data.colors[name],
        ]),
      ].sort((one, other) => one[1] - other[1]);
      const most = Math.max(...scores.map(([, score]) => score), 0.01);
      const answers = make("ol", { class: "cw-answers" });
      for (const [place, { text, correct: right, total: all }] of data.questions.entries())
        answers.append(
          make("li", {}, `${text} You said ${digits(guesses[place])}; ${right} of ${all} were correct (${digits(right / all)}).`),
        );
      result.replaceChildren(
        ...scores.map(([name, score, color]) =>
          track(name, score / most, { low: 0, high: Math.max(0, score / most), color, text: digits(score, 3) }),
        ),
        answers,
      );
      const place = scores.findIndex(([name]) => name === "You") + 1;
      said.textContent =
        `Your capability Brier score is ${digits(scores[place - 1][1], 3)} (lower is better), place ${place} of ` +
        `${scores.length}. Lowest: ${scores[0][0]}.`;
    };
    const save = () => {
      const lines = data.questions.map(({ id }, place) => [id, guesses[place], correct[place], total[place]].join(","));
      const text = ["question_id,confidence,correct,total", ...lines, ""].join("\n");
      const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: "guesses.csv" });
      link.click();
      URL.revokeObjectURL(link.href);
    };
    const buttons = make("div", { class: "cw-buttons" }, button("Compare", compare), button("Save as CSV", save));
    return [make("div", {}, ...rows), buttons, result, said];
  };

  /* One score after another: plug-in or corrected, and after a shift and a stretch of the log-odds. */
  const explorer = (data) => {
    const state = { set: 0, method: "", corrected: true, shift: 0, stretch: 1 };
    const pick = make("span");
    const plot = make("div", { class: "cw-plot", role: "img" });
    const bars = make("div");
    const said = make("p", { role: "status", "aria-live": "polite" });
    const move = (confidence) => {
      const inside = Math.min(0.999, Math.max(0.001, confidence));
      return 1 / (1 + Math.exp(-(state.stretch * Math.log(inside / (1 - inside)) + state.shift)));
    };
    const draw = () => {
      const { correct: allCorrect, total: allTotal, methods } = data.sets[state.set];
      const values = methods[state.method];
      const scored = range(values.length).filter((place) => values[place] !== null);
      const correct = scored.map((place) => allCorrect[place]);
      const total = scored.map((place) => allTotal[place]);
      const moved = state.shift || state.stretch !== 1;
      const confidence = scored.map((place) => (moved ? move(values[place]) : values[place]));
      const each = brier((place) => confidence[place], correct, total, state.corrected);
      const score = mean(each);
      const half = 1.96 * Math.sqrt(mean(each.map((term) => (term - score) ** 2)) / (each.length - 1));
      const baseline = mean(uniform(correct, total, state.corrected));
      const pooled = mean(correct.map((right, place) => right / total[place]));
      const constant = mean(brier(() => pooled, correct, total, state.corrected));
      const most = Math.max(0.5, score + half);
      const color = data.colors[state.method];
      bars.replaceChildren(
        track(state.method, score / most, { low: (score - half) / most, high: (score + half) / most, color, text: digits(score, 3) }),
        track("Uniform random", baseline / most, { color: data.colors["Uniform random"], text: digits(baseline, 3) }),
        track("Best constant", constant / most, { color: data.colors.constant, text: digits(constant, 3) }),
      );
      plot.replaceChildren(
        ...confidence.map((value, place) =>
          make("i", { style: { left: percent(value), bottom: percent(correct[place] / total[place]), "--ink": color } }),
        ),
      );
      plot.setAttribute("aria-label", `Scatter plot of mu_hat against ${state.method}, ${scored.length} questions.`);
      said.textContent =
        `${state.method} on ${data.sets[state.set].title}: ${state.corrected ? "corrected" : "plug-in"} capability Brier ` +
        `${digits(score, 3)}, 95 % interval ${digits(score - half, 3)} to ${digits(score + half, 3)} over ` +
        `${scored.length} questions (lower is better); best constant ${digits(constant, 3)}.`;
    };
    const set = (key) => (value) => {
      state[key] = value;
      draw();
    };
    const choose = (place) => {
      state.set = Number(place);
      const names = Object.keys(data.sets[state.set].methods);
      if (!names.includes(state.method)) state.method = names[0];
      pick.replaceChildren(choice("Method", names.map((name) => [name, name]), set("method"), state.method));
      draw();
    };
    choose(0);
    const sets = data.sets.map(({ title }, place) => [place, title]);
    const kinds = [["corrected", "corrected"], ["plug-in", "plug-in"]];
    const odds = (value) => digits(value, 1);
    return [
      make(
        "div",
        { class: "cw-buttons" },
        choice("Data set", sets, choose),
        pick,
        choice("Score", kinds, (value) => set("corrected")(value === "corrected")),
      ),
      slider("Shift the log-odds", { from: -4, to: 4, step: 0.1, value: 0, show: odds }, set("shift")),
      slider("Stretch the log-odds", { from: 0, to: 2, step: 0.1, value: 1, show: odds }, set("stretch")),
      bars,
      make("div", { class: "cw-axes" }, make("span", {}, "μ̂, 0 to 1"), plot, make("span", {}, "confidence, 0 to 1")),
      said,
    ];
  };

  /* Samples go, one after the other, to the question that gains most from the next one. */
  const allocate = (confidence, concentration, spend, most) => {
    const spent = confidence.map(() => 0);
    const fails = confidence.map(() => 1);
    const next = (place) => {
      const tried = spent[place];
      if (tried >= most) return -1;
      const share =
        concentration === null ? confidence[place] : (confidence[place] * concentration) / (concentration + tried);
      return fails[place] * share;
    };
    const gains = confidence.map((_, place) => next(place));
    for (let step = 0; step < spend; step += 1) {
      const best = gains.indexOf(Math.max(...gains));
      if (gains[best] < 0) break;
      fails[best] -= gains[best];
      spent[best] += 1;
      gains[best] = next(best);
    }
    return spent;
  };
  const passAt = (correct, total, tries) =>
    tries > total ? NaN : 1 - range(tries).reduce((left, step) => (left * Math.max(0, total - correct - step)) / (total - step), 1);

  const budget = (data) => {
    const state = { budget: 2, tries: 4 };
    const { confidence, correct, total, concentration, color } = data;
    const order = range(confidence.length).sort((one, other) => confidence[one] - confidence[other]);
    const bars = make("div", { class: "cw-bars", "aria-hidden": "true" });
    const lines = make("div");
    const said = make("p", { role: "status", "aria-live": "polite" });
    const draw = () => {
      const most = Math.min(...total);
      const spent = allocate(confidence, concentration, state.budget * confidence.length, most);
      const top = Math.max(...spent);
      bars.replaceChildren(...order.map((place) => make("i", { style: { height: percent(spent[place] / top), "--ink": color } })));
      const solved = mean(spent.map((tries, place) => passAt(correct[place], total[place], tries)));
      const even = mean(correct.map((right, place) => passAt(right, total[place], state.budget)));
      const actual = mean(correct.map((right, place) => passAt(right, total[place], state.tries)));
      const predicted = mean(
        confidence.map((share) => {
          const failed = (step) =>
            concentration === null ? 1 - share : 1 - (share * concentration) / (concentration + step);
          return 1 - range(state.tries).reduce((left, step) => left * failed(step), 1);
        }),
      );
      lines.replaceChildren(
        track("solved, divided by confidence", solved, { low: 0, high: solved, color, text: digits(100 * solved, 1) + " %" }),
        track("solved, spent evenly", even, { low: 0, high: even, color: data.even, text: digits(100 * even, 1) + " %" }),
        track(`pass@${state.tries}, predicted`, predicted, { color }),
        track(`pass@${state.tries}, from samples`, actual, { color: data.even }),
      );
      said.textContent =
        `With ${state.budget} samples a question, from 0 to ${top} each, ${digits(100 * solved, 1)} % of the questions are ` +
        `solved, against ${digits(100 * even, 1)} % by even spending. Pass@${state.tries} is ${digits(actual)}, predicted ` +
        `${digits(predicted)}.`;
    };
    const set = (key) => (value) => {
      state[key] = value;
      draw();
    };
    draw();
    return [
      slider("Budget B, samples a question", { from: 1, to: Math.min(16, ...total), value: state.budget }, set("budget")),
      slider("Tries k", { from: 1, to: Math.min(64, ...total), value: state.tries }, set("tries")),
      bars,
      make("p", { class: "cw-note" }, "Samples given to each question, from the least to the most confident"),
      lines,
      said,
    ];
  };

  const kinds = { coin, guess, explorer, budget };
  const start = () => {
    for (const place of document.querySelectorAll("figure.capcal-widget")) {
      const stage = make("div", { class: "cw-stage", role: "group", "aria-label": place.dataset.label });
      stage.append(...kinds[place.dataset.widget](JSON.parse(place.querySelector("script").textContent)));
      place.querySelector(".cw-fallback").replaceWith(stage);
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
