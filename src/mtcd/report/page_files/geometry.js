// Where the clients, the server and the names are on a canvas of a given size.
{
  const STRETCH = 1.7;  // a picture may be wider than its network by this much
  const LONGEST_NAME = 22;
  const MOST_NAMES = 400;  // above it hardly one fits, and to look for room takes long

  const bounds = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

  page.short = (name) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name);

  page.geometry = (network, width, height, zoom) => {
    const { positions } = network;
    const edge = Math.min(34, width * 0.07);
    const top = network.server ? 74 : edge;
    const [wide, high] = [width - 2 * edge, height - top - edge];
    const [left, right] = bounds(positions.map(([x]) => x));
    const [low, up] = bounds(positions.map(([, y]) => y));
    const across = right > left ? wide / (right - left) : Infinity;
    const down = up > low ? high / (up - low) : Infinity;
    const [sx, sy] = [Math.min(across, down * STRETCH, 1e6), Math.min(down, across * STRETCH, 1e6)];
    const { scale, dx, dy } = zoom;
    const x = Float32Array.from(positions, ([px]) => (edge + wide / 2 + (px - (left + right) / 2) * sx) * scale + dx);
    const y = Float32Array.from(positions, ([, py]) => (top + high / 2 + (py - (low + up) / 2) * sy) * scale + dy);
    const radius = Math.max(2, Math.min(13, 0.15 * scale * Math.sqrt((wide * high) / positions.length)));
    return { x, y, radius, width, height, server: network.server ? [width / 2, 34] : null };
  };

  page.spot = (geometry, place) => (place < 0 ? geometry.server ?? [geometry.width / 2, 34] : [geometry.x[place], geometry.y[place]]);

  /** The client at a point, or null. */
  page.nearest = (geometry, px, py) => {
    let [found, least] = [null, Math.max(14, geometry.radius + 4) ** 2];
    for (let client = 0; client < geometry.x.length; client += 1) {
      const distance = (geometry.x[client] - px) ** 2 + (geometry.y[client] - py) ** 2;
      if (distance < least) [found, least] = [client, distance];
    }
    return found;
  };

  /** Names that fit beside their clients without covering a client or another name. */
  page.labels = (geometry, names, pen) => {
    const { x, y, radius, width, height } = geometry;
    const inside = [...names.keys()].filter((k) => x[k] > 0 && x[k] < width && y[k] > 0 && y[k] < height);
    if (inside.length > MOST_NAMES) return [];
    const taken = inside.map((k) => [x[k] - radius, y[k] - radius, x[k] + radius, y[k] + radius]);
    const clear = (box) => box[0] > 2 && box[1] > 2 && box[2] < width - 2 && box[3] < height - 2
      && taken.every((other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3]);
    const placed = [];
    inside.forEach((client) => {
      const text = page.short(names[client]);
      const half = pen.measureText(text).width / 2 + 2;
      const gap = radius + 10;
      const spots = [[0, gap], [0, -gap], [gap + half - 4, 0], [-gap - half + 4, 0]];
      for (const [dx, dy] of spots) {
        const [cx, cy] = [x[client] + dx, y[client] + dy];
        const box = [cx - half, cy - 7, cx + half, cy + 7];
        if (clear(box)) {
          taken.push(box);
          placed.push({ text, x: cx, y: cy });
          return;
        }
      }
    });
    return placed;
  };
}
