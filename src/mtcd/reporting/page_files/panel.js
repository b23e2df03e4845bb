// Beside the picture: the clock, where each token is, and the client that is pointed at or chosen.
{
  const STATES = { up: "up", waiting: "waiting", gone: "gone", finished: "finished", unknown: "not known" };

  page.state = (client) => STATES[client.state] ?? client.state;

  /** What is known of a client at the time that is shown. */
  page.visits = (run, steps, client) => {
    const { visits, last_visit: last } = run.clients[client];
    if (!steps) return { visits, last, age: null };
    const seen = steps.lastIteration[client];
    const visited = seen >= 0;
    if (run.trace.windows && steps.ended) {  // with the messages that were left out
      // a federation that runs knows how often a client was visited, and not when
      if (last === null && visits !== null && visits > 0) return { visits, last: null, age: null, unknown: true };
      const age = last === null ? null : Math.max(0, steps.iteration - last);
      return { visits: visits ?? steps.visits[client], last, age };
    }
    const count = steps.gaps ? null : steps.visits[client];
    if (run.trace.windows && !visited && count !== 0) return { visits: count, last: null, age: null, unknown: true };
    return { visits: count, last: visited ? seen : null, age: visited ? steps.iteration - seen : null };
  };

  page.age = ({ last, age, unknown }) => {
    if (unknown) return "–";
    if (last === null) return "never";
    if (age === null) return `iteration ${page.number(last)}`;
    return age === 0 ? "this iteration" : `${page.plural(age, "iteration")} ago`;
  };

  /** The network in words, and what of it is left out of the picture. */
  page.caption = ({ network, trace, clients }) => {
    const links = page.plural(network.edges_total, "link");
    const cut = network.edges_total > network.edges.length ? ` (${page.number(network.edges.length)} drawn)` : "";
    const kind = network.kind === "network" ? [] : [network.kind];
    const parts = [...kind, page.plural(clients.length, "client"), `${links}${cut}`];
    if (network.server) parts.push("with a server");
    if (!trace || trace.total === trace.token.length) return parts.join(", ");
    const shown = `${page.number(trace.token.length)} of ${page.plural(trace.total, "message")} are shown`;
    const alone = trace.visits_before ? "" : "; at the end of the slider, visits and hops count all";
    return `${parts.join(", ")}; ${shown}, in windows of consecutive ones${alone}`;
  };

  /** What the colours of the picture mean. */
  page.showKey = (run, steps) => {
    const clusters = [...new Set(run.network?.clusters ?? [])].sort((a, b) => a - b);
    const entries = clusters.length > 1 && clusters.length <= 12
      ? clusters.map((cluster) => page.element("span", {}, page.swatch(cluster), `cluster ${cluster}`))
      : [];
    if (steps) entries.push(page.element("span", {}, "fainter: visited longer ago; empty: not yet"));
    page.at("key").replaceChildren(...entries);
  };

  page.swatch = (cluster) => {
    const made = page.element("span", { class: "swatch" });
    made.style.background = page.cluster(cluster);
    return made;
  };

  page.showClock = (steps, player) => {
    const parts = [`step ${page.number(player.step)} of ${page.number(player.count)}`];
    if (steps.iteration !== null) parts.push(`iteration ${page.number(steps.iteration)}`);
    if (steps.seconds !== null) parts.push(`${page.number(steps.seconds, 3)} s`);
    page.at("clock").textContent = parts.join(" · ");
    page.at("slider").setAttribute("aria-valuetext", parts.join(", "));
  };

  page.showTokens = (run, steps) => {
    page.show("tokens-part", Boolean(steps) && !steps.messages);
    if (!steps || steps.messages) return;
    const list = page.at("tokens");
    if (list.children.length !== steps.trace.tokens) {
      list.replaceChildren(...Array.from({ length: steps.trace.tokens }, (_, token) => page.element(
        "li", {}, page.element("b", {}, page.element("span", { class: "hidden" }, "token "), String(token)),
        page.element("span"), page.element("i"),
      )));
    }
    Array.from(list.children).forEach((row, token) => {
      const [badge, place, hops] = row.children;
      badge.style.background = page.strong(token);
      badge.style.color = page.readable(page.strong(token));
      place.textContent = steps.place[token] < 0 ? "server" : run.clients[steps.place[token]].name;
      hops.textContent = page.plural(steps.hops[token], "hop");
    });
  };

  page.showClient = (run, steps, client) => {
    const name = page.at("client-name");
    if (client === null) {
      name.textContent = "No client chosen";
      const hint = "Point at one, click it, or choose it in the table.";
      page.at("client").replaceChildren(page.element("dd", { class: "note" }, hint));
      return;
    }
    const one = run.clients[client];
    const seen = page.visits(run, steps, client);
    name.textContent = one.name;
    const rows = [
      ["state", page.state(one)],
      ["cluster", one.cluster === null ? "–" : String(one.cluster)],
      ["features", page.number(one.features)],
      ["visits so far", page.number(seen.visits)],
      ["visits in all", page.number(one.visits)],
      ["last visit", page.age(seen)],
      ["norm of its block", page.number(one.norm)],
    ];
    const roaming = steps && !steps.messages ? [...steps.place.keys()] : [];
    const held = roaming.filter((token) => steps.place[token] === client);
    if (held.length) rows.push(["holds", held.map((token) => `token ${token}`).join(", ")]);
    if (one.detail) rows.push(["detail", one.detail]);
    page.at("client").replaceChildren(...rows.flatMap(([term, value]) => [
      page.element("dt", {}, term), page.element("dd", {}, value),
    ]));
  };
}
