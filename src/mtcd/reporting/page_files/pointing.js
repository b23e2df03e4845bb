// Pointer and keys on the picture: pointing shows a client, a click chooses it, keys move time and choice.
{
  page.startPointing = (canvas, shown) => {
    const under = (event) => {
      const box = canvas.getBoundingClientRect();
      return page.nearest(shown.picture.geometry, event.clientX - box.left, event.clientY - box.top);
    };
    canvas.addEventListener("pointermove", (event) => {
      if (shown.zoom.drag(event)) return;
      shown.point(under(event));
      canvas.style.cursor = shown.pointed === null ? "default" : "pointer";
    });
    canvas.addEventListener("pointerleave", () => shown.point(null));
    canvas.addEventListener("click", (event) => { if (shown.zoom.clicked) shown.choose(under(event)); });

    const neighbour = (by) => {
      const count = shown.run.clients.length;
      shown.choose(shown.chosen === null ? (by > 0 ? 0 : count - 1) : (shown.chosen + by + count) % count);
      page.announce(shown.run.clients[shown.chosen].name);
    };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === "ArrowDown") neighbour(1);
      else if (event.key === "ArrowUp") neighbour(-1);
      else if (event.key === "Escape") shown.choose(null);
      else if (!shown.player.key(event) && !shown.zoom.key(event)) return;
      event.preventDefault();
    });
    document.addEventListener("keydown", (event) => {
      const free = event.target === document.body && !event.ctrlKey && !event.altKey && !event.metaKey;
      const scrolls = event.key === "Home" || event.key === "End";
      if (free && !scrolls && shown.player.count && shown.player.key(event)) event.preventDefault();
    });
  };
}
