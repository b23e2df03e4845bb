// What is read rather than watched: facts, messages by kind of link, ledger, coefficients, notes, settings.
{
  const WORDY = 40;
  const LINKS = { client_client: "between clients", uplink: "to the server", downlink: "from the server" };
  const TONE = {
    converged: "good", running: "good", finished: "good", diverged: "bad", failed: "bad", interrupted: "warn",
  };

  function bar(share, start = 0, minus = false) {
    const inner = page.element("div", { class: minus ? "minus" : null });
    inner.style.left = `${100 * start}%`;
    inner.style.width = `${100 * share}%`;
    return page.element("div", { class: "bar", "aria-hidden": "true" }, inner);
  }

  page.bytes = (count) => {
    const units = ["bytes", "kB", "MB", "GB", "TB"];
    let [value, unit] = [count, 0];
    while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
    return `${unit ? page.number(value, 3) : page.number(value)} ${units[unit]}`;
  };

  page.showSummary = (run) => {
    page.at("run-name").textContent = run.name;
    page.at("status").textContent = run.status;
    page.at("status").className = `chip ${TONE[run.status] ?? ""}`;
    page.at("message").textContent = run.message;
    page.at("facts").replaceChildren(...run.facts.map(([label, value]) => {
      const [term, said] = [page.element("dt", {}, label), page.element("dd", {}, value)];
      return page.element("div", { class: value.length > WORDY ? "wide" : null }, term, said);
    }));
  };

  page.showLinks = (run) => {
    page.show("links", run.links.length > 0);
    const most = (key) => Math.max(1, ...run.links.map((link) => link[key]));
    const rows = run.links.map((link) => [
      LINKS[link.link] ?? link.link,
      page.element("div", {}, page.number(link.messages), bar(link.messages / most("messages"))),
      page.element("div", {}, page.number(link.floats)),
      page.element("div", {}, page.bytes(link.bytes), bar(link.bytes / most("bytes"))),
    ]);
    page.fill(page.at("link-table"), ["Link", "Messages", "Floats", "Bytes"], rows);
  };

  page.showLedger = (run) => {
    page.show("ledger", run.ledger.length > 0);
    page.fill(page.at("ledger-table"), [], run.ledger, [1]);
  };

  page.showCoefficients = (run) => {
    page.show("coefficients", run.coefficients.length > 0);
    const parties = [...new Set(run.coefficients.map((one) => one.client))];
    page.options(page.at("party"), [["", "all"], ...parties.map((name) => [` ${name}`, name])]);
    const chosen = page.at("party").value;
    const shown = run.coefficients.filter((one) => chosen === "" || ` ${one.client}` === chosen)
      .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const most = Math.max(...run.coefficients.map((one) => Math.abs(one.value)), Number.MIN_VALUE);
    const rows = shown.map((one) => {
      const [share, minus] = [Math.abs(one.value) / most / 2, one.value < 0];
      return [one.column, one.client, page.number(one.value), bar(share, minus ? 0.5 - share : 0.5, minus)];
    });
    page.at("coefficients-title").textContent = run.gains ? "Largest gains of splits" : "Largest coefficients";
    const heading = run.gains ? "Share of the gain" : "Coefficient";
    page.fill(page.at("coefficient-table"), ["Column", "Party", heading, ""], rows, [2]);
  };

  page.showNotes = (run) => {
    page.show("notes", run.notes.length > 0);
    page.at("note-list").replaceChildren(...run.notes.map((note) => page.element("li", {}, note)));
  };

  page.showSettings = (run) => {
    page.show("settings", run.yaml !== null);
    if (page.at("yaml").textContent !== run.yaml) page.at("yaml").textContent = run.yaml ?? "";
  };

  /** Copies the settings; where the browser forbids it, marks them, ready for the keys of the system. */
  page.startCopying = () => {
    const button = page.at("copy");
    const text = button.textContent;
    const say = (words) => {
      button.textContent = words;
      page.announce(words);
      setTimeout(() => { button.textContent = text; }, 2000);
    };
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(page.at("yaml").textContent);
        say("Copied");
      } catch {
        getSelection().selectAllChildren(page.at("yaml"));
        say("Marked: copy with the keys");
      }
    });
  };
}
