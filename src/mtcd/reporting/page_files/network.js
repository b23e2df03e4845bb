// The network on a canvas: edges and names once, clients and tokens at every frame.
{
  const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
  const LEVELS = 6;

  page.Picture = class Picture {
    constructor(canvas, zoom) {
      this.canvas = canvas;
      this.zoom = zoom;
      this.pen = canvas.getContext("2d");
      this.still = document.createElement("canvas");
    }

    /** Takes another run, size or theme. */
    lay(run) {
      this.run = run;
      const box = this.canvas.getBoundingClientRect();
      const scale = Math.min(window.devicePixelRatio || 1, 2);
      for (const one of [this.canvas, this.still]) {
        one.width = Math.max(1, Math.round(box.width * scale));
        one.height = Math.max(1, Math.round(box.height * scale));
      }
      this.scale = scale;
      this.geometry = page.geometry(run.network, box.width, box.height, this.zoom);
      this.ink = page.colour("ink");
      this.quiet = page.colour("quiet");
      this.card = page.colour("card");
      this.accent = page.colour("accent");
      this.bad = page.colour("bad");
      const states = new Set(run.clients.map((client) => client.state));
      this.marked = states.size > 1 || states.has("gone");
      this.drawStill();
    }

    drawStill() {
      const pen = this.still.getContext("2d");
      const { x, y } = this.geometry;
      const { edges } = this.run.network;
      pen.setTransform(this.scale, 0, 0, this.scale, 0, 0);
      pen.clearRect(0, 0, this.geometry.width, this.geometry.height);
      pen.strokeStyle = this.quiet;
      pen.globalAlpha = Math.max(0.1, Math.min(0.55, 12 / Math.sqrt(edges.length + 1)));
      pen.lineWidth = edges.length > 500 ? 0.7 : 1.2;
      pen.beginPath();
      for (const [a, b] of edges) {
        pen.moveTo(x[a], y[a]);
        pen.lineTo(x[b], y[b]);
      }
      pen.stroke();
      pen.globalAlpha = 1;
      pen.font = FONT;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillStyle = this.quiet;
      for (const label of page.labels(this.geometry, this.run.clients.map((c) => c.name), pen)) {
        this.words(pen, label.text, label.x, label.y);
      }
    }

    /** Text with a rim in the colour of the paper, so that lines behind it do not disturb. */
    words(pen, text, x, y) {
      pen.strokeStyle = this.card;
      pen.lineWidth = 4;
      pen.lineJoin = "round";
      pen.strokeText(text, x, y);
      pen.fillText(text, x, y);
    }

    draw(steps, fraction, pointed, chosen) {
      const pen = this.pen;
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
      pen.drawImage(this.still, 0, 0);
      pen.setTransform(this.scale, 0, 0, this.scale, 0, 0);
      pen.font = FONT;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      if (steps) page.drawTrails(this, steps, fraction);
      this.drawClients(steps);
      if (this.geometry.server) this.drawServer();
      if (this.marked) this.drawMarks();
      if (steps) page.drawTokens(this, steps, fraction);
      for (const client of new Set([chosen, pointed])) {
        if (client !== null) this.drawChosen(client);
      }
    }

    /** Clients in the colour of their cluster, stronger the less long ago the last visit is. */
    drawClients(steps) {
      const { x, y, radius } = this.geometry;
      const { pen } = this;
      const clusters = this.run.network.clusters;
      const fade = steps ? Math.max(6, (2 * x.length) / Math.max(1, steps.trace.tokens)) : 1;
      const buckets = new Map();
      for (let client = 0; client < x.length; client += 1) {
        const age = steps ? steps.at - steps.lastStep[client] : 0;
        const unseen = steps && steps.lastStep[client] < 0;  // or in a message that was left out
        const least = steps && steps.visits[client] > 0 ? 1 : 0;
        let level = unseen ? least : Math.ceil(LEVELS * (0.3 + 0.7 * Math.exp(-age / fade)));
        if (this.run.clients[client].state === "gone" || this.run.clients[client].state === "waiting") level = 0;
        const key = (clusters ? clusters[client] : 0) * (LEVELS + 1) + Math.min(level, LEVELS);
        if (!buckets.has(key)) buckets.set(key, new Path2D());
        const path = buckets.get(key);
        path.moveTo(x[client] + radius, y[client]);
        path.arc(x[client], y[client], radius, 0, 2 * Math.PI);
      }
      for (const [key, path] of buckets) {
        const colour = page.cluster(Math.floor(key / (LEVELS + 1)));
        pen.fillStyle = this.card;
        pen.fill(path);
        pen.globalAlpha = (key % (LEVELS + 1)) / LEVELS;
        pen.fillStyle = colour;
        pen.fill(path);
        pen.globalAlpha = 1;
        pen.strokeStyle = radius > 4 ? this.quiet : colour;
        pen.lineWidth = radius > 4 ? 1.2 : 0.8;
        pen.stroke(path);
      }
    }

    drawServer() {
      const [cx, cy] = this.geometry.server;
      const { pen } = this;
      pen.fillStyle = this.card;
      pen.strokeStyle = this.quiet;
      pen.lineWidth = 1.4;
      pen.beginPath();
      pen.roundRect(cx - 34, cy - 14, 68, 28, 8);
      pen.fill();
      pen.stroke();
      pen.fillStyle = this.ink;
      pen.fillText("server", cx, cy);
    }

    /** States by shape: gone a red cross, waiting three dots, finished a tick. */
    drawMarks() {
      const { x, y, radius } = this.geometry;
      const { pen } = this;
      const size = Math.max(3, radius * 0.45);
      pen.strokeStyle = this.ink;
      pen.fillStyle = this.ink;
      pen.lineWidth = 1.8;
      this.run.clients.forEach((client, k) => {
        const [cx, cy] = [x[k], y[k]];
        pen.beginPath();
        pen.strokeStyle = client.state === "gone" ? this.bad : this.ink;
        if (client.state === "gone") {
          pen.arc(cx, cy, radius, 0, 2 * Math.PI);
          pen.moveTo(cx - size, cy - size); pen.lineTo(cx + size, cy + size);
          pen.moveTo(cx + size, cy - size); pen.lineTo(cx - size, cy + size);
          pen.stroke();
        } else if (client.state === "waiting") {
          for (const shift of [-1, 0, 1]) pen.rect(cx + shift * size - 1, cy - 1, 2, 2);
          pen.fill();
        } else if (client.state === "finished") {
          pen.moveTo(cx - size, cy); pen.lineTo(cx - size / 4, cy + size * 0.7); pen.lineTo(cx + size, cy - size * 0.7);
          pen.stroke();
        }
      });
    }

    drawChosen(client) {
      this.pen.font = FONT;
      const [x, y] = page.spot(this.geometry, client);
      const { pen } = this;
      pen.beginPath();
      pen.arc(x, y, Math.max(this.geometry.radius + 4, 8), 0, 2 * Math.PI);
      pen.strokeStyle = this.accent;
      pen.lineWidth = 3;
      pen.stroke();
      const text = page.short(this.run.clients[client].name);
      const half = pen.measureText(text).width / 2;
      const middle = Math.max(half + 8, Math.min(this.geometry.width - half - 8, x));
      const above = y < 46 ? y + this.geometry.radius + 20 : y - this.geometry.radius - 18;
      pen.fillStyle = this.ink;
      pen.beginPath();
      pen.roundRect(middle - half - 7, above - 11, 2 * half + 14, 22, 6);
      pen.fill();
      pen.fillStyle = this.card;
      pen.fillText(text, middle, above);
    }
  };
}
