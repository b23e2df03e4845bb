// The page: one run is shown, at one time, with one client chosen.
{
  const TABLES_MS = 250;  // while the picture plays, the tables follow four times a second

  class Page {
    constructor(report) {
      this.chosen = null;
      this.pointed = null;
      this.steps = null;
      this.written = 0;
      this.zoom = new page.Zoom(page.at("canvas"), () => this.layOut());
      this.picture = new page.Picture(page.at("canvas"), this.zoom);
      this.player = new page.Player((settled) => this.move(settled));
      this.table = new page.ClientTable((client) => this.choose(client));
      this.curves = new page.Curves();
      page.at("run").addEventListener("input", () => this.showRun(true));
      page.at("party").addEventListener("input", () => page.showCoefficients(this.run));
      page.startCopying();
      page.startPointing(page.at("canvas"), this);
      page.startTheme(() => this.restyle());
      this.take(report, true);
      new ResizeObserver(() => this.layOut()).observe(page.at("canvas"));
      if (report.mode !== "file") page.live(report, (latest) => this.take(latest, false));
    }

    take(report, first) {
      this.report = report;
      document.title = report.title;
      page.at("title").textContent = report.title;
      page.at("version").textContent = `mtcd ${report.version}`;
      const before = this.run?.name;
      page.options(page.at("run"), report.runs.map((run) => [run.name, run.name]));
      page.show("run-choice", report.runs.length > 1);
      page.show("nothing", !report.runs.length);
      page.show("main", report.runs.length > 0);
      if (!report.runs.length) return;
      this.showRun(first || page.at("run").value !== before);
      this.curves.take(report.runs);
    }

    showRun(fresh) {
      const run = this.report.runs.find(({ name }) => name === page.at("run").value);
      this.run = run;
      if (fresh || this.chosen >= run.clients.length) this.chosen = null;
      this.steps = run.trace && run.trace.token.length ? new page.Steps(run.trace, run.clients.length, run.clients) : null;
      page.showSummary(run);
      page.showLinks(run);
      page.showLedger(run);
      page.showCoefficients(run);
      page.showNotes(run);
      page.showSettings(run);
      this.describe(run);
      if (fresh) this.zoom.reset();
      this.layOut();
      this.table.take(run, this.steps, this.chosen);
      this.player.take(this.steps?.count ?? 0, fresh, this.report.mode !== "file");
    }

    describe(run) {
      const { network } = run;
      page.showKey(run, this.steps);
      page.show("canvas", network !== null && run.clients.length > 0);
      page.show("zoom", network !== null);
      page.show("player", network !== null && this.steps !== null);
      page.show("network-missing", network === null || this.steps === null);
      page.at("network-missing").textContent = network === null
        ? "This run does not hold its network: it was written by an older version. Train again to see it."
        : "No hops of tokens were recorded for this run.";
      page.at("network-caption").textContent = network === null ? "" : page.caption(run);
      page.at("canvas").setAttribute("aria-label", `Picture of the network: ${page.at("network-caption").textContent}`);
      page.at("clients-caption").textContent = this.steps ? "at the time of the slider above" : "";
    }

    layOut() {
      if (!this.run?.network || page.at("canvas").hidden) return;
      this.picture.lay(this.run);
      this.draw();
    }

    restyle() {
      if (!this.run) return;
      this.layOut();
      this.write(!this.player.playing);
      if (!this.curves.runs.length) return;
      this.curves.legend();
      this.curves.build();
    }

    draw() {
      if (!this.run.network || page.at("canvas").hidden) return;
      this.steps?.seek(this.player.step);
      this.picture.draw(this.steps, this.player.fraction, this.pointed, this.chosen);
    }

    /** The time has changed, or another client is chosen. */
    move(settled) {
      this.steps?.seek(this.player.step);
      this.draw();
      const now = performance.now();
      if (!settled && now - this.written < TABLES_MS) return;
      this.written = now;
      this.write(settled);
    }

    write(settled) {
      if (this.steps) page.showClock(this.steps, this.player);
      page.showTokens(this.run, this.steps);
      page.showClient(this.run, this.steps, this.pointed ?? this.chosen);
      this.table.update(this.chosen, settled);
      this.curves.mark(this.run, this.steps ? this.steps.iteration : null);
    }

    choose(client) {
      this.chosen = client;
      this.move(!this.player.playing);
    }

    point(client) {
      if (client === this.pointed) return;
      this.pointed = client;
      this.draw();
      page.showClient(this.run, this.steps, this.pointed ?? this.chosen);
    }
  }

  page.shown = new Page(JSON.parse(page.at("report").textContent));
}
