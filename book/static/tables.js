/* What is wider than the page says so, and pages are printed in the light theme. Tables of more than three rows can be
   sorted: the last row of their head has a button for each column. Rows that are folded away are sorted with the
   others. */
(() => {
  "use strict";

  /* The first number of a cell, which stands before its interval; what has none comes last. */
  const number = (cell) => parseFloat(cell.replace(/^[^\d−-]+/, "").replace("−", "-").replaceAll(",", ""));
  const numbers = (one, other, up) => {
    const [left, right] = [number(one), number(other)];
    return Number.isNaN(left) - Number.isNaN(right) || up * (left - right);
  };
  const words = (one, other, up) => up * one.localeCompare(other);

  const sortable = (figure) => {
    const tables = [...figure.querySelectorAll("table.capcal")];
    const heads = tables.map((table) => [...table.tHead.rows].at(-1).cells);
    const sort = (place) => {
      const up = heads[0][place].ariaSort === "ascending" ? -1 : 1;
      const text = (row) => row.cells[place].textContent.trim();
      const parts = tables.map((table) => [...table.tBodies[0].rows]);
      const rows = parts.flat();
      const compare = rows.every((row) => /^[^\p{L}]*(\d|$)/u.test(text(row))) ? numbers : words;
      rows.sort((one, other) => compare(text(one), text(other), up));
      for (const [part, table] of tables.entries()) {
        for (const head of heads[part]) head.ariaSort = null;
        heads[part][place].ariaSort = up > 0 ? "ascending" : "descending";
        table.tBodies[0].replaceChildren(...rows.splice(0, parts[part].length));
      }
    };
    for (const head of heads.flatMap((row) => [...row]).filter(({ tagName }) => tagName === "TH")) {
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

  for (const figure of document.querySelectorAll("figure.capcal-table"))
    if (figure.querySelector("tbody").rows.length > 3) sortable(figure);
})();
