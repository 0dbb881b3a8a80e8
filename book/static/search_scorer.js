/* Pages come before terms of the glossary and these before the API, and what a title says before what a text says. */
var Scorer = {
  score: ([page, , anchor, , score]) =>
    page.startsWith("reference/api") ? score - 1000 : anchor.startsWith("#term-") ? score / 20 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
