/* How a search is answered. A page counts by the words of the question that it has, each the more the fewer pages have
   it, most in its title and least in its text; words need not all be there. A term of the glossary and an item of the
   paper, such as Table 7, are found by their name wherever in the question it stands. */
const IN_TITLE = 4;
const IN_HEADING = 2;
const IN_TEXT = 1;
const TERM = 60; // of a hundred, which a page has that holds all words in its title
const MEANING = 120; // of a term whose meaning is asked for
const ITEM = 120;
const SHOWN = 240; // characters of a paragraph
const UNLIKELY = 0.4; // of the best page's score: pages below are left out

// Frequent questions, and the pages that answer them.
const answers = [
  [/how many samples/, "notebooks/02_k_eval_choice"],
  [/which (method|confidence)|\blabels\b|unlabell?ed/, "guide/which_method"],
  [/what holds|claims?\b/, "notebooks/09_statements"],
  [/\bhelps?\b/, "notebooks/10_uses"],
  [/^\W*(brier( scores?)?|temperature)\W*$|response.*capability/, "theory/definitions"],
  [/\bresults\b/, "notebooks/04_main_table"],
  [/gpt-oss|olmo|qwen3/, "notebooks/16_printed"],
];

const question = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase();
const isAnswer = (page) => answers.some(([words, answer]) => words.test(question) && page === answer);
const asksMeaning = /^\W*(what (is|are)|what does .* mean)\b/.test(question);
const asList = (files) => (files === undefined ? [] : [files].flat());

// Words that ask are in nearly every page, and say nothing of what is looked for.
stopwords.push("what", "which", "how", "why", "do", "does", "did", "can", "i");

/* The numbers of the pages that have a word, or a name of it with a version, such as qwen2; where none has, of those
   that have it as part of a word. */
const pagesWith = (word, index) => {
  const terms = Object.keys(index);
  let found = terms.filter((term) => term === word || (term.startsWith(word) && /^\d+$/.test(term.slice(word.length))));
  if (found.length === 0 && word.length > 2) found = terms.filter((term) => term.includes(word));
  return new Set(found.flatMap((term) => asList(index[term])));
};

/* A row of Sphinx's results: page, title, anchor, description, score, file. */
const result = (file, anchor, score, part = "") => {
  const { docnames, titles, filenames } = Search._index;
  return [docnames[file], titles[file] + part, anchor, null, score, filenames[file]];
};

const pageResults = (words) => {
  const { terms, titleterms, titles, docnames } = Search._index;
  const scores = new Map();
  let whole = 0;
  for (const word of words) {
    const headings = pagesWith(word, titleterms);
    const pages = new Set([...headings, ...pagesWith(word, terms)]);
    if (pages.size === 0) continue;
    const rarity = Math.log(1 + titles.length / pages.size);
    whole += IN_TITLE * rarity;
    for (const page of pages) {
      let weight = headings.has(page) ? IN_HEADING : IN_TEXT;
      if (titles[page].toLowerCase().includes(word)) weight = IN_TITLE;
      scores.set(page, (scores.get(page) ?? 0) + weight * rarity);
    }
  }
  const best = Math.max(...scores.values());
  const likely = [...scores].filter(([page, score]) => score >= UNLIKELY * best || isAnswer(docnames[page]));
  return likely.map(([page, score]) => result(page, "", (100 * score) / whole));
};

/* Glossary terms and items of the paper whose whole name is in the question. */
const namedResults = () => {
  const words = ` ${splitQuery(question).join(" ")} `;
  const named = [];
  for (const [name, places] of Object.entries(Search._index.indexentries))
    if (words.includes(` ${splitQuery(name).join(" ")} `))
      for (const [file, anchor, main] of places) if (main) named.push(result(file, `#${anchor}`, ITEM, ` > ${name}`));
  return named;
};

var Scorer = {
  score: ([page, , anchor, , score]) => {
    if (page.startsWith("reference/api")) return score - 1000;
    if (isAnswer(page)) return score + 100;
    if (anchor.startsWith("#term-")) return asksMeaning ? MEANING : Math.min(score, TERM);
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 80,
};

Search.performTermsSearch = (words) => [...namedResults(), ...pageResults(words)];

/* An address is shown once, as its best result, which comes last. */
const search = Search._performSearch;
Search._performSearch = (...query) => {
  const best = new Map(search(...query).map((found) => [found[0] + found[2], found]));
  return [...best.values()].sort((one, other) => one[4] - other[4]);
};

// Mathematics within a sentence: the two letters that this book is about, and dots for the rest.
const spell = (formula) => {
  const text = formula.replace(/\\[()]/g, "").replaceAll("\\hat\\mu", "μ̂").replaceAll("\\mu", "μ");
  return text.includes("\\") ? "…" : text;
};

/* What a result says: a term its definition, an item of the paper its row, and else a heading's section or the page. */
const partOf = (article, anchor) => {
  const place = anchor ? article.querySelector(`[id="${anchor.slice(1)}"]`) : article;
  if (place?.matches("dt")) {
    let next = place;
    while (next.matches("dt")) next = next.nextElementSibling;
    return next;
  }
  return place?.closest("tr") ?? place ?? article;
};

/* Below a result stands its paragraph with most words of the question. */
Search.makeSearchSummary = (page, words, anchor) => {
  const whole = new DOMParser().parseFromString(page, "text/html");
  const part = partOf(whole.querySelector("article"), anchor);
  for (const other of part.querySelectorAll(".capcal-about, .headerlink, .evidence, figcaption a, script, style")) other.remove();
  for (const formula of part.querySelectorAll(".math")) formula.textContent = spell(formula.textContent);
  const paragraphs = part.matches("tr") ? [part] : part.querySelectorAll("p, figcaption");
  let most = -1;
  let text = "";
  for (const paragraph of paragraphs) {
    const said = paragraph.textContent.replace(/\s+/g, " ").trim();
    const number = [...words].filter((word) => said.toLowerCase().includes(word)).length;
    if (number > most) [most, text] = [number, said];
  }
  const summary = document.createElement("p");
  summary.className = "context";
  summary.textContent = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  return summary;
};
