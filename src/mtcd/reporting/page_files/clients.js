// The table of clients: sorted, filtered, in pages; it has all that the picture shows.
{
  const ROWS = 25;
  const text = (a, b) => a.localeCompare(b, "en", { numeric: true });

  page.ClientTable = class ClientTable {
    constructor(choose) {
      this.choose = choose;
      this.sort = { key: "number", down: false };
      this.start = 0;
      for (const id of ["filter", "state-filter"]) {
        page.at(id).addEventListener("input", () => { this.start = 0; this.order(); });
      }
      page.at("before").addEventListener("click", () => this.turn(-ROWS));
      page.at("after").addEventListener("click", () => this.turn(ROWS));
    }

    /** The columns that this run has: key, heading, value to sort by, text to show. */
    columns() {
      const { run } = this;
      const seen = (k) => page.visits(run, this.steps, k);
      const traced = Boolean(this.steps);
      const has = (key) => run.clients.some((client) => client[key] !== null && client[key] !== "");
      const all = [
        { key: "number", heading: "Nr", numeric: true, value: (k) => k, shown: (k) => String(k) },
        { key: "name", heading: "Client", value: (k) => run.clients[k].name },
        { key: "cluster", heading: "Cluster", there: has("cluster"), numeric: true },
        { key: "state", heading: "State", value: (k) => page.state(run.clients[k]) },
        { key: "features", heading: "Features", there: has("features"), numeric: true },
        {
          key: "visits", heading: "Visits so far", there: traced || has("visits"), numeric: true,
          value: (k) => seen(k).visits,
        },
        {
          key: "last", heading: "Last visit", there: traced || has("last_visit"),
          value: (k) => seen(k).last, shown: (k) => page.age(seen(k)),
        },
        { key: "norm", heading: "Norm of its block", there: has("norm"), numeric: true },
        { key: "detail", heading: "Detail", there: has("detail") },
      ];
      return all.filter((column) => column.there !== false).map((column) => {
        const value = column.value ?? ((k) => run.clients[k][column.key]);
        const shown = column.shown ?? ((k) => (column.numeric ? page.number(value(k)) : value(k) ?? ""));
        return { ...column, value, shown };
      });
    }

    take(run, steps, chosen) {
      [this.run, this.steps, this.chosen] = [run, steps, chosen];
      const states = [...new Set(run.clients.map(page.state))].sort();
      page.options(page.at("state-filter"), [["", "any"], ...states.map((state) => [state, state])]);
      this.heads();
      this.order();
    }

    /** The headings, which are left alone where they are the same, so that the focus stays on them. */
    heads() {
      const columns = this.columns();
      const now = JSON.stringify([columns.map(({ key }) => key), this.sort]);
      if (now === this.headed) return;
      this.headed = now;
      const head = columns.map(({ key, heading, numeric }) => {
        const sorted = this.sort.key === key ? (this.sort.down ? "descending" : "ascending") : "none";
        const button = page.element("button", { type: "button" }, heading);
        button.addEventListener("click", () => this.sortBy(key));
        const look = { scope: "col", "aria-sort": sorted, class: numeric ? "number" : null, "data-key": key };
        return page.element("th", look, button);
      });
      page.at("client-table").replaceChildren(
        page.element("thead", {}, page.element("tr", {}, ...head)), page.element("tbody"),
      );
    }

    sortBy(key) {
      this.sort = { key, down: this.sort.key === key && !this.sort.down };
      this.start = 0;
      this.heads();
      this.order();
      page.at("client-table").querySelector(`th[data-key="${key}"] button`).focus();
    }

    turn(by) {
      this.start += by;
      this.rows();
    }

    /** Which clients are shown, in which order; unknown values come last. */
    order() {
      const wanted = page.at("filter").value.trim().toLowerCase();
      const state = page.at("state-filter").value;
      const column = this.columns().find(({ key }) => key === this.sort.key) ?? this.columns()[0];
      const found = this.run.clients.map((_, k) => k).filter((k) => {
        const client = this.run.clients[k];
        return client.name.toLowerCase().includes(wanted) && (state === "" || page.state(client) === state);
      });
      const values = new Map(found.map((k) => [k, column.value(k)]));
      const compare = (a, b) => (typeof a === "string" ? text(a, b) : a - b);
      found.sort((a, b) => {
        const [x, y] = [values.get(a), values.get(b)];
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        return (this.sort.down ? compare(y, x) : compare(x, y)) || a - b;
      });
      this.found = found;
      this.rows();
    }

    rows() {
      this.start = Math.max(0, Math.min(this.start, Math.floor((this.found.length - 1) / ROWS) * ROWS));
      const focused = document.activeElement?.dataset?.client;
      const columns = this.columns();
      const shown = this.found.slice(this.start, this.start + ROWS);
      page.at("client-table").tBodies[0].replaceChildren(...shown.map((k) => this.row(k, columns)));
      if (focused !== undefined) page.at("client-table").querySelector(`[data-client="${focused}"]`)?.focus();
      const last = Math.min(this.found.length, this.start + ROWS);
      page.at("page").textContent = this.found.length
        ? `${page.number(this.start + 1)} to ${page.number(last)} of ${page.number(this.found.length)}`
        : "No client matches the filter.";
      page.at("before").disabled = this.start === 0;
      page.at("after").disabled = last >= this.found.length;
    }

    row(k, columns) {
      const cells = columns.map((column) => {
        if (column.key === "name") return page.element("th", { scope: "row" }, this.nameButton(k));
        const { cluster } = this.run.clients[k];
        const swatch = column.key === "cluster" && cluster !== null ? page.swatch(cluster) : null;
        const look = column.numeric ? "number" : column.key === "last" ? "line" : null;
        const alarming = column.key === "state" && this.run.clients[k].state === "gone";
        return page.element("td", { class: alarming ? "bad" : look }, swatch, column.shown(k));
      });
      return page.element("tr", { class: this.chosen === k ? "chosen" : null }, ...cells);
    }

    nameButton(k) {
      const look = { type: "button", "data-client": k, "aria-pressed": this.chosen === k ? "true" : "false" };
      const button = page.element("button", look, this.run.clients[k].name);
      button.addEventListener("click", () => this.choose(this.chosen === k ? null : k));
      return button;
    }

    /** Another time: the order changes only where it rests. */
    update(chosen, settled) {
      this.chosen = chosen;
      if (settled) this.order();
      else this.rows();
    }
  };
}
