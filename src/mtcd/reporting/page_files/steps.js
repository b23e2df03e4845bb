// Time: the steps of a trace, and where all tokens are and whom they visited at a step.
{
  const TRAIL = 7;

  /** Whether nothing roams: a method without tokens, whose messages are traced as if each client had a token. */
  function onlyMessages({ token, sender, receiver, tokens }, clients) {
    return tokens === clients && clients > 1
      && token.every((one, hop) => one === (sender[hop] < 0 ? receiver[hop] : sender[hop]));
  }

  /** Neighbours that all exchange messages do so at once: a step is an iteration. */
  function stepOfRounds({ iteration }) {
    const rank = new Map([...new Set(iteration)].sort((a, b) => a - b).map((one, index) => [one, index + 1]));
    return Int32Array.from(iteration, (one) => rank.get(one));
  }

  /** Hops of one token follow each other, tokens move at once, the server sends when all have come back. */
  function stepOfHops({ token, sender, receiver, tokens, windows }) {
    const steps = new Int32Array(token.length);
    const starts = new Set((windows ?? []).map(([start]) => start));
    const last = new Int32Array(tokens);
    let [server, high] = [0, 0];
    for (let hop = 0; hop < steps.length; hop += 1) {
      if (starts.has(hop)) {
        last.fill(high);
        server = high;
      }
      const step = 1 + Math.max(last[token[hop]], sender[hop] < 0 ? server : 0);
      steps[hop] = last[token[hop]] = step;
      if (receiver[hop] < 0) server = Math.max(server, step);
      high = Math.max(high, step);
    }
    return steps;
  }

  page.Steps = class Steps {
    /** `known`: the clients, with the visits of the whole run. */
    constructor(trace, clients, known = []) {
      this.trace = trace;
      this.known = known;
      this.messages = onlyMessages(trace, clients);
      this.rounds = this.messages && !trace.sender.includes(-1);
      this.step = this.rounds ? stepOfRounds(trace) : stepOfHops(trace);
      this.order = Int32Array.from(this.step.keys()).sort((a, b) => this.step[a] - this.step[b] || a - b);
      this.count = this.order.length ? this.step[this.order.at(-1)] : 0;
      this.visits = new Int32Array(clients);
      this.lastIteration = new Float64Array(clients);
      this.lastStep = new Int32Array(clients);
      this.place = new Int32Array(trace.tokens);
      this.hops = new Int32Array(trace.tokens);
      this.starts = new Map((trace.windows ?? []).map(([start], index) => [start, index]));
      this.trails = Array.from({ length: trace.tokens }, () => []);
      this.rewind();
    }

    rewind() {
      this.at = 0;
      this.done = 0;
      this.iteration = null;
      this.seconds = null;
      this.visits.fill(0);
      this.lastIteration.fill(-1);
      this.lastStep.fill(-1);
      this.hops.fill(0);
      this.trails.forEach((trail) => { trail.length = 0; });
      const { token, sender } = this.trace;
      for (let hop = token.length - 1; hop >= 0; hop -= 1) this.place[token[hop]] = sender[hop];
    }

    /** Goes to a step: all its hops, and those before, have been delivered. */
    seek(step) {
      if (step < this.at) this.rewind();
      this.at = step;
      while (this.done < this.order.length && this.step[this.order[this.done]] <= step) {
        this.deliver(this.order[this.done]);
        this.done += 1;
        if (this.ended && this.starts.size) this.complete();
      }
    }

    /** Whether messages were left out, so that visits at this step are not known: at the end they are again. */
    get gaps() {
      return this.starts.size > 0 && this.trace.visits_before === null && !this.messages;
    }

    /** At the end, what the messages that were left out have added. */
    complete() {
      const hops = this.trace.all_hops ?? [];
      hops.forEach((count, token) => { this.hops[token] = count; });
      this.iteration = Math.max(this.iteration, ...hops);
      this.known.forEach(({ visits }, client) => { this.visits[client] = visits ?? this.visits[client]; });
    }

    get ended() { return this.done === this.order.length; }

    deliver(hop) {
      const { token, sender, receiver, iteration, seconds } = this.trace;
      const [mover, place] = [token[hop], receiver[hop]];
      const window = this.starts.get(hop);
      if (window !== undefined && this.trace.visits_before) this.visits.set(this.trace.visits_before[window]);
      this.place[mover] = place;
      // a hop ends a visit at a client, as on the ledger; what the server sends is none
      if (this.trace.hops) this.hops[mover] = Math.max(this.hops[mover], this.trace.hops[hop]);
      else this.hops[mover] += sender[hop] >= 0 ? 1 : 0;
      this.iteration = Math.max(this.iteration ?? 0, iteration[hop]);
      this.seconds = seconds[hop] ?? this.seconds;
      const trail = this.trails[mover];
      trail.push(hop);
      if (trail.length > TRAIL) trail.shift();
      if (place >= 0) this.lastStep[place] = this.step[hop];
      if (sender[hop] >= 0) this.endVisit(sender[hop], hop);
    }

    /** A visit ends when the client sends on; where neighbours exchange messages, each iteration is one visit. */
    endVisit(client, hop) {
      const iteration = this.trace.iteration[hop];
      if (!this.rounds || (iteration > 0 && iteration > this.lastIteration[client])) this.visits[client] += 1;
      this.lastIteration[client] = iteration;
      this.lastStep[client] = this.step[hop];
    }

    /** The hops that are under way after this step. */
    moving() {
      let end = this.done;
      while (end < this.order.length && this.step[this.order[end]] === this.at + 1) end += 1;
      return this.order.subarray(this.done, end);
    }
  };
}
