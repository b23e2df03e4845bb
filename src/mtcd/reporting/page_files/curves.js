// Curves of all runs, drawn by BokehJS: what against what, scales, which runs, and a mark at the time that is shown.
{
  const words = (name) => name.replaceAll("_", " ");
  const WIDE = 1e3;  // values that differ by more than this factor are shown on a logarithmic scale at first

  page.Curves = class Curves {
    constructor() {
      Bokeh.set_log_level("warn");
      this.off = new Set();
      this.span = null;
      for (const id of ["curve-x", "log-x", "log-y"]) page.at(id).addEventListener("input", () => this.build());
      page.at("curve-y").addEventListener("input", () => { this.suggestScale(); this.build(); });
    }

    get x() { return page.at("curve-x").value; }

    get y() { return page.at("curve-y").value; }

    suggestScale() {
      const values = this.runs.flatMap((run) => run.curves.columns[this.y] ?? []).filter((value) => value !== null);
      const [least, most] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, 0]);
      page.at("log-y").checked = this.y === "gap" || (least > 0 && most > WIDE * least);
    }

    /** Takes the runs; a picture that only grew keeps its view. */
    take(runs) {
      const before = this.key;
      this.runs = runs.filter((run) => run.curves.x.length && run.curves.y.length);
      page.show("curves", this.runs.length > 0);
      if (!this.runs.length) return;
      const names = (side) => [...new Set(this.runs.flatMap((run) => run.curves[side]))];
      const union = (side) => names(side).map((name) => [name, words(name)]);
      page.options(page.at("curve-x"), union("x"));
      page.options(page.at("curve-y"), union("y"));
      if (before === undefined) this.suggestScale();
      this.key = JSON.stringify([union("x"), union("y"), this.runs.map((run) => run.name)]);
      if (this.key === before) this.refresh();
      else { this.legend(); this.build(); }
    }

    legend() {
      const entry = (run, index) => {
        const box = page.element("input", { type: "checkbox" });
        box.checked = !this.off.has(run.name);
        box.addEventListener("input", () => {
          if (box.checked) this.off.delete(run.name);
          else this.off.add(run.name);
          this.build();
        });
        return page.element("li", {}, page.element("label", {}, box, this.sample(index), run.name));
      };
      page.at("legend").replaceChildren(...this.runs.map(entry));
      page.show("legend", this.runs.length > 1);
    }

    sample(index) {
      const space = "http://www.w3.org/2000/svg";
      const svg = document.createElementNS(space, "svg");
      const line = document.createElementNS(space, "line");
      for (const [name, value] of [["width", 30], ["height", 10], ["aria-hidden", true]]) svg.setAttribute(name, value);
      const look = [["x1", 0], ["x2", 30], ["y1", 5], ["y2", 5], ["stroke", page.strong(index)], ["stroke-width", 2.5],
        ["stroke-dasharray", page.dash(index).join(" ")]];
      for (const [name, value] of look) line.setAttribute(name, value);
      svg.append(line);
      return svg;
    }

    /** The points of a run; what a logarithmic scale cannot show is left out. */
    points(run) {
      const { columns } = run.curves;
      const usable = (name, log) => (columns[name] ?? []).map((v) => (v === null || (log && v <= 0) ? NaN : v));
      const x = usable(this.x, page.at("log-x").checked);
      const y = usable(this.y, page.at("log-y").checked);
      return x.length === y.length ? { x, y } : { x: [], y: [] };
    }

    refresh() {
      this.runs.forEach((run, index) => { if (this.sources[index]) this.sources[index].data = this.data(run); });
      this.ends();
    }

    data(run) {
      const { x, y } = this.points(run);
      return { x, y, run: x.map(() => run.name) };
    }

    build() {
      const type = (id) => (page.at(id).checked ? "log" : "linear");
      const figure = Bokeh.Plotting.figure({
        height: 360, sizing_mode: "stretch_width", x_axis_type: type("log-x"), y_axis_type: type("log-y"),
        x_axis_label: words(this.x), y_axis_label: words(this.y), tools: "pan,box_zoom,wheel_zoom,reset,save",
        active_scroll: null, active_drag: null,
      });
      this.dress(figure);
      this.sources = this.runs.map((run, index) => {
        if (this.off.has(run.name)) return null;
        const source = new Bokeh.ColumnDataSource({ data: this.data(run) });
        const look = { line_width: 2.2, line_color: page.strong(index), line_dash: page.dash(index) };
        figure.line({ field: "x" }, { field: "y" }, { source, ...look });
        return source;
      });
      const tooltips = [["run", "@run"], [words(this.x), "@x{0,0.[000]}"], [words(this.y), "@y{0.0000e}"]];
      figure.add_tools(new Bokeh.HoverTool({ tooltips, mode: "mouse", line_policy: "nearest" }));
      const look = { line_color: page.colour("quiet"), line_dash: [4, 4], line_width: 1.2, visible: false };
      this.span = new Bokeh.Span({ dimension: "height", ...look });
      figure.add_layout(this.span);
      this.place(figure);
      this.ends();
      if (this.marked) this.mark(...this.marked);
    }

    /** Puts the figure in place of the one before, and gives the part that takes the focus its name. */
    place(figure) {
      const holder = page.element("div");
      const name = `${words(this.y)} against ${words(this.x)}; the last values are in the table that follows`;
      page.at("plot").replaceChildren(holder);
      this.view?.then((view) => view.remove());
      this.view = Bokeh.Plotting.show(figure, holder).then((view) => {
        view.canvas_view.events_el.setAttribute("role", "img");
        view.canvas_view.events_el.setAttribute("aria-label", name);
        return view;
      });
    }

    /** The colours of the page. */
    dress(figure) {
      const [ink, line] = [page.colour("quiet"), page.colour("line")];
      figure.background_fill_color = null;
      figure.border_fill_color = null;
      figure.outline_line_color = null;
      figure.toolbar.logo = null;
      figure.toolbar.autohide = true;
      for (const axis of figure.axes) {
        if (axis.type === "LinearAxis") axis.formatter.doFormat = page.ticks;
        axis.axis_line_color = line;
        axis.major_tick_line_color = line;
        axis.minor_tick_line_color = null;
        axis.major_label_text_color = ink;
        axis.axis_label_text_color = ink;
        axis.axis_label_text_font_style = "normal";
      }
      for (const grid of figure.grids) grid.grid_line_color = line;
    }

    /** A line where a run was at an iteration. */
    mark(run, iteration) {
      this.marked = [run, iteration];
      if (!this.span) return;
      const iterations = run.curves.columns.iteration ?? [];
      const xs = run.curves.columns[this.x] ?? [];
      let row = -1;
      while (row + 1 < iterations.length && iterations[row + 1] <= iteration) row += 1;
      const there = iteration !== null && row >= 0 && xs[row] !== null && xs[row] !== undefined;
      this.span.visible = there;
      if (there) this.span.location = this.x === "iteration" ? iteration : xs[row];
    }

    /** The last values in words, which is also what a screen reader gets. */
    ends() {
      const last = (run, name) => {
        const known = (run.curves.columns[name] ?? []).filter((value) => value !== null);
        return page.number(known.length ? known.at(-1) : null);
      };
      page.fill(
        page.at("ends"), ["Run", "Status", `Last ${words(this.x)}`, `Last ${words(this.y)}`],
        this.runs.map((run) => [run.name, run.status, last(run, this.x), last(run, this.y)]), [2, 3],
      );
    }
  };
}
