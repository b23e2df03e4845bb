// Time: the steps of a trace, and where all tokens are and whom they visited at a step.
{
  /** The step of each hop: hops of one token follow each other, tokens move at once, an iteration waits for the last. */
  function stepOfHops(trace) {
    const steps = new Int32Array(trace.token.length);
    const starts = new Set((trace.windows ?? []).map(([start]) => start));
    const last = new Int32Array(trace.tokens);
    let now = -Infinity, barrier = 0, high = 0;
    for (let hop = 0; hop < steps.length; hop += 1) {
      if (trace.iteration[hop] > now || starts.has(hop)) {
        barrier = high;
        now = trace.iteration[hop];
      }
      const token = trace.token[hop];
      steps[hop] = Math.max(last[token], barrier) + 1;
      last[token] = steps[hop];
      high = Math.max(high, steps[hop]);
    }
    return steps;
  }

  page.Steps = class Steps {
    constructor(trace, clients) {
      this.trace = trace;
      this.step = stepOfHops(trace);
      this.order = Int32Array.from(this.step.keys()).sort((a, b) => this.step[a] - this.step[b] || a - b);
      this.count = this.order.length ? this.step[this.order.at(-1)] : 0;
      this.visits = new Int32Array(clients);
      this.lastIteration = new Float64Array(clients);
      this.lastStep = new Int32Array(clients);
      this.place = new Int32Array(trace.tokens);
      this.hops = new Int32Array(trace.tokens);
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
      for (let hop = this.step.length - 1; hop >= 0; hop -= 1) this.place[this.trace.token[hop]] = this.trace.sender[hop];
    }

    /** Goes to a step: all its hops, and those before, have been delivered. */
    seek(step) {
      if (step < this.at) this.rewind();
      this.at = step;
      while (this.done < this.order.length && this.step[this.order[this.done]] <= step) {
        this.deliver(this.order[this.done]);
        this.done += 1;
      }
    }

    deliver(hop) {
      const { token, receiver, iteration, seconds } = this.trace;
      const [mover, place] = [token[hop], receiver[hop]];
      this.place[mover] = place;
      this.hops[mover] += 1;
      this.iteration = Math.max(this.iteration ?? 0, iteration[hop]);
      this.seconds = seconds[hop] ?? this.seconds;
      const trail = this.trails[mover];
      trail.push(hop);
      if (trail.length > 7) trail.shift();
      if (place < 0) return;
      this.visits[place] += 1;
      this.lastIteration[place] = iteration[hop];
      this.lastStep[place] = this.step[hop];
    }

    /** The hops that are under way after this step. */
    moving() {
      let end = this.done;
      while (end < this.order.length && this.step[this.order[end]] === this.at + 1) end += 1;
      return this.order.subarray(this.done, end);
    }
  };
}
