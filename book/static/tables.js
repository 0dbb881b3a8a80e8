/* What is wider than the page says so, and pages are printed in the light theme. Tables of more than three rows can be
   sorted: the last row of their head has a button for each column. Columns of numbers line up on the right. */
(() => {
  "use strict";

  /* The first number of a cell, which stands before its interval; what has none comes last. */
  const number = (cell) => parseFloat(cell.replace(/^[^\d−-]+/, "").replace("−", "-").replaceAll(",", ""));
  const numbers = (one, other, up) => {
    const [left, right] = [number(one), number(other)];
    return Number.isNaN(left) - Number.isNaN(right) || up * (left - right);
  };
  const words = (one, other, up) => up * one.localeCompare(other);

  const sortable = (table) => {
    const heads = [...[...table.tHead.rows].at(-1).cells];
    const text = (row, place) => row.cells[place].textContent.trim();
    const rows = () => [...table.tBodies[0].rows];
    const numeric = heads.map((_, place) => rows().every((row) => /^[^\p{L}]*(\d|$)/u.test(text(row, place))));
    for (const row of [...table.tHead.rows, ...rows()].filter(({ cells }) => cells.length === heads.length))
      for (const [place, cell] of [...row.cells].entries()) cell.classList.toggle("number", numeric[place]);
    if (rows().length < 4) return;
    const sort = (place) => {
      const up = heads[place].ariaSort === "ascending" ? -1 : 1;
      const compare = numeric[place] ? numbers : words;
      const sorted = rows().sort((one, other) => compare(text(one, place), text(other, place), up));
      for (const head of heads) head.ariaSort = null;
      heads[place].ariaSort = up > 0 ? "ascending" : "descending";
      table.tBodies[0].replaceChildren(...sorted);
    };
    for (const head of heads.filter(({ tagName }) => tagName === "TH")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(head.cellIndex));
      head.append(button);
    }
  };

  /* What has to be scrolled says so, and a figure then takes the keyboard's focus; the theme sees to the others. */
  const watched = document.querySelectorAll(
    ".capcal-scroll, .cell_output figure, .pst-scrollable-table-container, .cell_output .output.text_html",
  );
  const mark = () => {
    for (const each of watched) {
      const wide = each.scrollWidth > each.clientWidth + 1;
      each.classList.toggle("capcal-wide", wide);
      if (each.matches("figure")) each.tabIndex = wide ? 0 : -1;
    }
  };
  addEventListener("load", mark);
  addEventListener("resize", mark);

  /* Paper is white. */
  const { dataset } = document.documentElement;
  let theme = "light";
  addEventListener("beforeprint", () => {
    theme = dataset.theme;
    dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    dataset.theme = theme;
  });

  for (const table of document.querySelectorAll("table.capcal")) sortable(table);
})();
