// The time of the picture: slider, play and pause, speed, and the keys.
{
  const SPEEDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  const SECONDS = 60;  // a whole run takes about this long at the speed that is chosen at first

  page.Player = class Player {
    /** `changed(settled)` is called whenever the time changed; `settled` when it rests there. */
    constructor(changed) {
      this.changed = changed;
      this.time = 0;
      this.count = 0;
      this.playing = false;
      this.follows = false;
      this.calm = matchMedia("(prefers-reduced-motion: reduce)");
      this.frame = this.frame.bind(this);
      page.options(page.at("speed"), SPEEDS.map((speed) => [String(speed), `${page.number(speed)} / s`]), "4");
      page.at("slider").addEventListener("input", (event) => this.go(Number(event.target.value)));
      page.at("play").addEventListener("click", () => this.toggle());
      page.at("back").addEventListener("click", () => this.go(Math.ceil(this.time) - 1));
      page.at("forward").addEventListener("click", () => this.go(Math.floor(this.time) + 1));
      this.label();
    }

    /** Takes the steps of a run; a new one is shown at its end, a live one goes on from where it was. */
    take(count, fresh, live) {
      const atEnd = this.time >= this.count;
      this.count = count;
      page.at("slider").max = count;
      if (fresh) {
        const speed = SPEEDS.find((one) => one >= 4 && one * SECONDS >= count) ?? SPEEDS.at(-1);
        page.at("speed").value = String(speed);
        this.stop();
        this.go(count);
      } else if (live && atEnd && this.time < count && !this.playing) {
        this.follows = true;
        this.start();
      } else {
        this.go(Math.min(this.time, count), this.playing);
      }
    }

    get step() { return Math.floor(this.time); }

    get fraction() { return this.calm.matches ? 0 : this.time - this.step; }

    go(time, playing = false) {
      if (!playing) this.stop();
      this.time = Math.max(0, Math.min(this.count, time));
      page.at("slider").value = this.step;
      this.changed(!this.playing);
    }

    toggle() {
      if (this.playing) {
        this.stop();
        this.changed(true);
      } else {
        if (this.time >= this.count) this.time = 0;
        this.follows = false;
        this.start();
      }
    }

    start() {
      if (!this.count) return;
      this.playing = true;
      this.last = null;
      this.label();
      requestAnimationFrame(this.frame);
    }

    stop() {
      this.playing = false;
      this.follows = false;
      this.label();
    }

    label() {
      page.at("play").textContent = this.playing ? "Pause" : "Play";
    }

    /** A live picture that is followed catches up within a second; another goes at the speed that was chosen. */
    frame(now) {
      if (!this.playing) return;
      const passed = this.last === null ? 0 : Math.min(0.25, (now - this.last) / 1000);
      this.last = now;
      const speed = Number(page.at("speed").value);
      this.rate = this.follows ? Math.max(speed, this.count - this.time, this.rate ?? 0) : speed;
      const time = this.time + passed * this.rate;
      if (time >= this.count) {
        this.rate = 0;
        this.go(this.count);
        return;
      }
      this.go(time, true);
      requestAnimationFrame(this.frame);
    }

    /** The keys of the picture; returns whether the key was one of them. */
    key(event) {
      const far = event.shiftKey ? 10 : 1;
      if (event.key === "ArrowLeft") this.go(Math.ceil(this.time) - far);
      else if (event.key === "ArrowRight") this.go(Math.floor(this.time) + far);
      else if (event.key === "Home") this.go(0);
      else if (event.key === "End") this.go(this.count);
      else if (event.key === " ") this.toggle();
      else return false;
      return true;
    }
  };
}
