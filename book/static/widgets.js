/* The book's widgets: plain scripts without a server. Each reads the JSON that its page holds, takes the place of the
   static table beside it, works with the keyboard, and says its result in a live region. */
(() => {
  "use strict";

  const make = (tag, properties = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name === "style") for (const [key, rule] of Object.entries(value)) node.style.setProperty(key, rule ?? "");
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };
  const button = (text, action, look = false) => make("button", { type: "button", onclick: action, class: look }, text);
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

  /* A number between 0 and 1 on a line: an interval, a dot, more marks, and what it is called. */
  const track = (label, value, { low, high, color, text, ticks = [], marks = [] } = {}) => {
    const line = make("div", { class: "cw-track", "aria-hidden": "true" });
    for (const tick of ticks) line.append(make("i", { class: "cw-tick", style: { left: percent(tick) } }));
    if (low !== undefined)
      line.append(
        make("i", { class: "cw-interval", style: { left: percent(low), width: percent(high - low), "--ink": color } }),
      );
    for (const { at, kind = "cw-dot", color: ink } of marks)
      line.append(make("i", { class: kind, style: { left: percent(at), "--ink": ink } }));
    if (Number.isFinite(value)) line.append(make("i", { class: "cw-dot", style: { left: percent(value), "--ink": color } }));
    return make("div", { class: "cw-row" }, make("span", {}, label), line, make("b", {}, text ?? digits(value)));
  };

  /* The 95 % Jeffreys interval of a share: quantiles of Beta(right + 1/2, wrong + 1/2). With the share written as a
     squared sine, its density is a product of powers, which is summed on a fine grid. */
  const jeffreys = (right, asked) => {
    const steps = 4000;
    const angles = range(steps).map((step) => ((step + 0.5) / steps) * (Math.PI / 2));
    const logs = angles.map((angle) => 2 * right * Math.log(Math.sin(angle)) + 2 * (asked - right) * Math.log(Math.cos(angle)));
    const top = logs.reduce((most, log) => Math.max(most, log), -Infinity);
    const weights = logs.map((log) => Math.exp(log - top));
    const whole = weights.reduce((sum, weight) => sum + weight, 0);
    const quantile = (share) => {
      let sum = 0;
      const place = weights.findIndex((weight) => (sum += weight) >= share * whole);
      return Math.sin(angles[place]) ** 2;
    };
    return [right === 0 ? 0 : quantile(0.025), right === asked ? 1 : quantile(0.975)];
  };

  /* The same things in another order, each order as likely as any other. */
  const shuffled = (things) => {
    const mixed = [...things];
    for (let last = mixed.length - 1; last > 0; last -= 1) {
      const place = Math.floor(Math.random() * (last + 1));
      [mixed[last], mixed[place]] = [mixed[place], mixed[last]];
    }
    return mixed;
  };

  /* Fresh answers to one question: the capability target settles, the response target does not. The recorded answers
     come in an order drawn anew at each visit and each start. */
  const coin = (data) => {
    let asked = 0;
    const unsure = data.questions.map(({ verdicts }) => Math.abs(mean([...verdicts].map(Number)) - 0.5));
    const first = unsure.indexOf(Math.min(...unsure)); // where answers vary most
    let question = data.questions[first];
    let order = [];
    const newest = make("span", { class: "cw-newest", "aria-hidden": "true" });
    const tosses = make("div", { class: "cw-tosses", "aria-hidden": "true" });
    const response = make("div");
    const capability = make("div");
    const said = make("p", { role: "status", "aria-live": "polite" });
    const draw = (before) => {
      const seen = order.slice(0, asked);
      const correct = seen.map((place) => question.verdicts[place] === "1");
      const right = correct.filter(Boolean).length;
      const last = asked ? Number(correct.at(-1)) : NaN;
      const [low, high] = asked ? jeffreys(right, asked) : [0, 1];
      const answer = asked ? question.answers[seen.at(-1)] : "";
      newest.replaceChildren(asked ? make("i", { class: last ? "right" : "wrong" }) : "", answer ? `“${answer}”` : "…");
      tosses.replaceChildren(
        ...correct.map((is, place) =>
          make("i", { class: is ? "right" : "wrong", style: { "--late": `${Math.max(0, place - before) * 12}ms` } }),
        ),
      );
      response.replaceChildren(track("target", last, { text: asked ? String(last) : "–", ticks: [0, 1] }));
      capability.replaceChildren(track("target μ̂", asked ? right / asked : NaN, { low, high, ticks: [0, 1] }));
      said.textContent = asked
        ? `Answer ${asked}: “${answer}” is ${last ? "correct" : "not correct"}, so its response target is ${last}; ` +
          `${right} of ${asked} answers ${asked === 1 ? "is" : "are"} correct: μ̂ = ${digits(right / asked)}, ` +
          `95 % interval ${digits(low)} to ${digits(high)}.`
        : "Not asked yet: any expected accuracy from 0 to 1 is possible.";
    };
    const ask = (times) => {
      const before = asked;
      asked = Math.min(asked + times, order.length);
      draw(before);
    };
    const restart = () => {
      order = shuffled(range(question.verdicts.length));
      asked = 0;
      draw(0);
    };
    const names = data.questions.map(({ text }, place) => [place, text]);
    restart();
    ask(10); // a drawing from the start
    return [
      make(
        "div",
        { class: "cw-buttons" },
        button("Ask once", () => ask(1), "cw-first"),
        button("Ask 10 times", () => ask(10)),
        button("Ask 100 times", () => ask(100)),
        button("Start again", restart),
      ),
      make(
        "div",
        { class: "cw-scene" },
        choice("Question", names, (place) => {
          question = data.questions[place];
          restart();
        }, first),
        make("i", { class: "cw-arrow", "aria-hidden": "true" }),
        make("span", { class: "cw-box" }, data.model),
        make("i", { class: "cw-arrow", "aria-hidden": "true" }),
        newest,
      ),
      tosses,
      make(
        "div",
        { class: "cw-targets" },
        make("div", {}, make("p", {}, make("b", {}, "Response calibration: "), "is this answer correct?"), response),
        make("div", {}, make("p", {}, make("b", {}, "Capability calibration: "), "how often is the model correct here?"), capability),
      ),
      said,
    ];
  };

  /* Theorem 2: the two scores of a confidence s, which lie apart by the variance wherever s stands. */
  const theorem = () => {
    const state = { s: 0.8, mu: 0.6 };
    const plot = make("div", { class: "cw-curves", role: "img" });
    const said = make("p", { role: "status", "aria-live": "polite" });
    const place = (x, y) => `${digits(40 + 300 * x, 1)},${digits(190 - 170 * y, 1)}`;
    const curve = (height) => range(101).map((step) => place(step / 100, height(step / 100))).join(" ");
    const draw = () => {
      const { s, mu } = state;
      const variance = mu * (1 - mu);
      const capability = (x) => (x - mu) ** 2;
      const response = (x) => capability(x) + variance;
      const dot = (y) => `<circle cx="${40 + 300 * s}" cy="${190 - 170 * y}" r="5"/>`;
      plot.innerHTML =
        `<svg viewBox="0 0 360 225" aria-hidden="true"><path class="axis" d="M40 20 V190 H340"/>` +
        `<text x="32" y="24" text-anchor="end">1</text><text x="32" y="194" text-anchor="end">0</text>` +
        `<text x="40" y="208" text-anchor="middle">0</text><text x="340" y="208" text-anchor="middle">1</text>` +
        `<text x="190" y="220" text-anchor="middle">confidence s</text>` +
        `<path class="mean" d="M${place(mu, 0)} L${place(mu, 1)}"/>` +
        `<text x="${40 + 300 * mu}" y="14" text-anchor="middle">μ</text>` +
        `<g class="response"><polyline points="${curve(response)}"/>${dot(response(s))}</g>` +
        `<g class="capability"><polyline points="${curve(capability)}"/>${dot(capability(s))}</g>` +
        `<path class="gap" d="M${place(s, capability(s))} L${place(s, response(s))}"/></svg>`;
      plot.setAttribute("aria-label", "Two parabolas over the confidence, one above the other by the same amount everywhere.");
      said.textContent =
        `s = ${digits(s)}, μ = ${digits(mu)}: expected response Brier ${digits(response(s), 3)} = capability Brier ` +
        `${digits(capability(s), 3)} + correctness variance ${digits(variance, 3)}. The gap does not depend on s.`;
    };
    const set = (key) => (value) => {
      state[key] = value;
      draw();
    };
    draw();
    const unit = { from: 0, to: 1, step: 0.01, show: (value) => digits(value) };
    return [
      slider("Confidence s", { ...unit, value: state.s }, set("s")),
      slider("Expected accuracy μ", { ...unit, value: state.mu }, set("mu")),
      plot,
      make("p", { class: "cw-legend" }, make("i", { class: "response" }), "expected response Brier", make("i", { class: "capability" }), "capability Brier"),
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

  /* The best constant for a question: the mean share of the others. */
  const others = (correct, total) => {
    const shares = correct.map((right, place) => right / total[place]);
    return (place) => (shares.length * mean(shares) - shares[place]) / (shares.length - 1);
  };

  /* Ten guesses of the reader's, scored beside the model's own confidences. */
  const guess = (data) => {
    const guesses = data.questions.map(() => 0.5);
    const moved = new Set();
    const correct = data.questions.map((question) => question.correct);
    const total = data.questions.map((question) => question.total);
    const result = make("div");
    const said = make("p", { role: "status", "aria-live": "polite" });
    const rows = data.questions.map(({ text }, place) =>
      slider(text, { from: 0, to: 100, value: 50, show: (value) => `${value} %` }, (value) => {
        guesses[place] = value / 100;
        moved.add(place);
      }),
    );
    const compare = () => {
      const scores = [
        ["You", mean(brier((place) => guesses[place], correct, total)), data.colors.You],
        ["Uniform random", mean(uniform(correct, total)), data.colors["Uniform random"]],
        ["Always one half", mean(brier(() => 0.5, correct, total)), data.colors.constant],
        ["Best constant: the mean of the other questions", mean(brier(others(correct, total), correct, total)), data.colors.constant],
        ...Object.entries(data.methods).map(([name, values]) => [
          name,
          mean(brier((place) => values[place], correct, total)),
          data.colors[name],
        ]),
      ].sort((one, other) => one[1] - other[1]);
      const most = Math.max(...scores.map(([, score]) => score), 0.01);
      const answers = make("ol", { class: "cw-answers" });
      const lines = make("div", { class: "cw-dots" });
      for (const [place, { text, correct: right, total: all }] of data.questions.entries()) {
        const told = Object.entries(data.methods).map(([name, values]) => ({ at: values[place], color: data.colors[name] }));
        const marks = [...told, { at: right / all, kind: "cw-truth" }, { at: guesses[place], kind: "cw-you" }];
        lines.append(track(text, NaN, { marks, text: digits(right / all) }));
        answers.append(
          make("li", {}, `${text} You said ${digits(guesses[place])}; ${right} of ${all} were correct (${digits(right / all)}).`),
        );
      }
      const legend = make("p", { class: "cw-legend" }, make("i", { class: "cw-truth" }), "answered correctly", make("i", { class: "cw-you" }), "you");
      for (const name of Object.keys(data.methods))
        legend.append(make("i", { class: "cw-dot", style: { "--ink": data.colors[name] } }), name);
      result.replaceChildren(
        make("p", {}, make("b", {}, "Each question: "), "how often it was answered correctly, and what was said"),
        legend,
        lines,
        make("details", {}, make("summary", {}, "The same in words"), answers),
        make("p", {}, make("b", {}, "Capability Brier score: "), "lower is better"),
        ...scores.map(([name, score, color]) =>
          track(name, score / most, { low: 0, high: Math.max(0, score / most), color, text: digits(score, 3) }),
        ),
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
    const guessed = (action) => () => {
      const left = guesses.length - moved.size; // who has not guessed does not see the key
      if (left) said.textContent = `Guess first: move every slider. ${left} of ${guesses.length} are left.`;
      else action();
    };
    const buttons = make(
      "div",
      { class: "cw-buttons" },
      button("Compare", guessed(compare)),
      button("Save as CSV", guessed(save)),
    );
    return [make("div", {}, ...rows), buttons, result, said];
  };

  /* Say of how many questions a method has no confidence, such as a number that the model did not state. */
  const leftOut = (values) => {
    const without = values.filter((value) => value === null).length;
    return without ? ` Left out: ${without} of ${values.length} questions, on which this method has no confidence.` : "";
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
      const known = others(allCorrect, allTotal);
      const constant = mean(brier((place) => known(scored[place]), correct, total, state.corrected));
      const most = Math.max(0.5, score + half);
      const color = data.sets[state.set].colors[state.method];
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
        `${scored.length} questions (lower is better); best constant ${digits(constant, 3)}.` +
        leftOut(values);
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

  const kinds = { coin, theorem, guess, explorer };
  const start = () => {
    for (const toggle of document.querySelectorAll(".bd-links summary")) // the theme's have no name
      toggle.setAttribute("aria-label", toggle.closest("li").querySelector("a").textContent);
    for (const box of document.querySelectorAll(".cell_output:has(> img)"))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0; // a figure that scrolls, on a telephone
    for (const place of document.querySelectorAll("figure.capcal-widget")) {
      const stage = make("div", { class: "cw-stage", role: "group", "aria-label": place.dataset.label });
      stage.append(...kinds[place.dataset.widget](JSON.parse(place.querySelector("script").textContent)));
      place.querySelector(".cw-fallback").replaceWith(stage);
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
