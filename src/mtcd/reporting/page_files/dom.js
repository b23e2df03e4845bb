// Elements, texts and numbers. What comes from a report becomes text here, never HTML.
const page = {};
{
  page.at = (id) => document.getElementById(id);

  page.element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  };

  page.show = (id, there) => { page.at(id).hidden = !there; };

  /** Replaces the options of a select, and keeps the choice where it is still there. */
  page.options = (select, pairs, chosen = pairs[0]?.[0]) => {
    const before = select.options.length ? select.value : chosen;
    const same = pairs.length === select.options.length
      && pairs.every(([value, text], i) => select.options[i].value === value && select.options[i].text === text);
    if (!same) select.replaceChildren(...pairs.map(([value, text]) => page.element("option", { value }, text)));
    select.value = pairs.some(([value]) => value === before) ? before : chosen;
  };

  page.number = (value, digits = 4) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    const whole = Number.isInteger(value);
    const rounded = whole ? value : Number(value.toPrecision(digits));
    const shown = size >= 1e15 || (!whole && (size >= 1e6 || size < 1e-3))
      ? value.toExponential(digits - 2).replace("e+", "e")
      : rounded.toLocaleString("en", { maximumFractionDigits: 10 });
    return shown.replaceAll("-", "−");
  };

  /** The numbers of an axis, with as many digits as tell them apart. */
  page.ticks = (values) => {
    const size = Math.max(...values.map(Math.abs));
    const step = values.length > 1 ? Math.abs(values[1] - values[0]) : size;
    const digits = Math.max(1, Math.min(15, 1 + Math.ceil(Math.log10(size / step || 1))));
    const long = size >= 1e6 || size < 1e-3;
    const labels = values.map((value) => {
      const exact = Math.abs(value) < step / 2 ? 0 : Number(value.toPrecision(digits));
      const shown = long && exact ? exact.toExponential().replace("e+", "e")
        : exact.toLocaleString("en", { maximumFractionDigits: 12 });
      return shown.replaceAll("-", "−");
    });
    // numbers that differ by less than a double can tell get one label
    return labels.map((label, i) => (labels.indexOf(label) === i ? label : ""));
  };

  page.plural = (count, word) => `${page.number(count)} ${word}${count === 1 ? "" : "s"}`;

  /** Fills a table: headings, then rows of texts or nodes, the first of which names the row. */
  page.fill = (table, headings, rows, numeric = []) => {
    const side = (column) => (numeric.includes(column) ? "number" : null);
    const cell = (content, column) => (column === 0
      ? page.element("th", { scope: "row" }, content)
      : page.element("td", { class: side(column) }, content));
    const head = headings.map((text, column) => page.element("th", { scope: "col", class: side(column) }, text));
    table.replaceChildren(
      ...(head.length ? [page.element("thead", {}, page.element("tr", {}, ...head))] : []),
      page.element("tbody", {}, ...rows.map((row) => page.element("tr", {}, ...row.map(cell)))),
    );
  };

  /** Says a sentence to screen readers; used for what the user asked for and for a lost connection only. */
  page.announce = (text) => { page.at("announcer").textContent = text; };
}
