/* Pages come before terms of the glossary and these before the API, and what a title says before what a text says. The
   questions that most readers come with lead to the page that answers them. */
var asked = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase();
var answers = [
  [/how many samples/, "notebooks/02_k_eval_choice"],
  [/which (method|confidence)/, "notebooks/11_small_models"],
  [/what holds|claims/, "notebooks/11_small_models"],
  [/\bhelps?\b/, "notebooks/12_applications"],
  [/brier|temperature/, "theory/definitions"],
];
var Scorer = {
  score: ([page, , anchor, , score]) => {
    if (page.startsWith("reference/api")) return score - 1000;
    if (answers.some(([words, answer]) => words.test(asked) && page === answer)) return score + 100;
    return anchor.startsWith("#term-") ? score / 20 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
