// Nearer and farther: buttons, keys, control key and wheel; dragging shifts a picture that was enlarged.
{
  const MOST = 40;
  const STEP = 1.5;
  const CLICK = 4;  // a pointer that moved by fewer pixels has clicked

  page.Zoom = class Zoom {
    constructor(canvas, changed) {
      this.canvas = canvas;
      this.changed = changed;
      this.reset();
      page.at("nearer").addEventListener("click", () => this.by(STEP));
      page.at("farther").addEventListener("click", () => this.by(1 / STEP));
      page.at("whole").addEventListener("click", () => { this.reset(); changed(); });
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.by(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
      }, { passive: false });
      canvas.addEventListener("pointerdown", () => { this.dragged = 0; });
    }

    reset() {
      [this.scale, this.dx, this.dy, this.dragged] = [1, 0, 0, 0];
      this.settle();
    }

    /** Enlarges around a point, which stays where it is. */
    by(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
      const scale = Math.max(1, Math.min(MOST, this.scale * factor));
      const change = scale / this.scale;
      this.scale = scale;
      this.dx = x - (x - this.dx) * change;
      this.dy = y - (y - this.dy) * change;
      this.settle();
      this.changed();
    }

    /** Follows a pointer that is held down; returns whether it drags. */
    drag(event) {
      if (this.scale === 1 || !(event.buttons & 1)) return false;
      this.dragged += Math.abs(event.movementX) + Math.abs(event.movementY);
      this.dx += event.movementX;
      this.dy += event.movementY;
      this.settle();
      this.changed();
      return true;
    }

    get clicked() { return this.dragged < CLICK; }

    /** The picture always covers the canvas. */
    settle() {
      const within = (shift, length) => Math.min(0, Math.max(length * (1 - this.scale), shift));
      this.dx = within(this.dx, this.canvas.clientWidth);
      this.dy = within(this.dy, this.canvas.clientHeight);
      this.canvas.style.touchAction = this.scale > 1 ? "none" : "pan-y pinch-zoom";
      page.at("farther").disabled = this.scale === 1;
      page.at("whole").disabled = this.scale === 1;
      page.at("nearer").disabled = this.scale === MOST;
    }

    key(event) {
      if (event.key === "+" || event.key === "=") this.by(STEP);
      else if (event.key === "-") this.by(1 / STEP);
      else if (event.key === "0") this.by(1 / MOST);
      else return false;
      return true;
    }
  };
}
