// Where the clients, the server and the names are on a canvas of a given size.
{
  const STRETCH = 1.7;  // a picture may be wider than its network by this much
  const ROOM = 95;  // pixels around the middle without clients, for the server to be there
  const LONGEST_NAME = 22;
  const MOST_NAMES = 400;  // above it hardly one fits, and to look for room takes long

  const wider = ([low, high], value) => [Math.min(low, value), Math.max(high, value)];
  const bounds = (values) => values.reduce(wider, [Infinity, -Infinity]);

  page.short = (name) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name);

  /** Places in pixels below `top`, as large as fits, stretched a little at most. */
  function fitted(positions, width, height, top) {
    const side = Math.max(20, Math.min(84, width * 0.09));
    const bottom = 34;
    const [wide, high] = [width - 2 * side, height - top - bottom];
    const [left, right] = bounds(positions.map(([x]) => x));
    const [low, up] = bounds(positions.map(([, y]) => y));
    const across = right > left ? wide / (right - left) : Infinity;
    const down = up > low ? high / (up - low) : Infinity;
    const [sx, sy] = [Math.min(across, down * STRETCH, 1e6), Math.min(down, across * STRETCH, 1e6)];
    const middle = [side + wide / 2, top + high / 2];
    const [cx, cy] = [(left + right) / 2, (low + up) / 2];
    return { middle, places: positions.map(([x, y]) => [middle[0] + (x - cx) * sx, middle[1] + (y - cy) * sy]) };
  }

  /** The server is in the middle of a ring, or else above all clients. */
  function withServer({ positions, server, kind }, width, height) {
    const whole = fitted(positions, width, height, 34);
    const [nearest] = bounds(whole.places.map(([x, y]) => Math.hypot(x - whole.middle[0], y - whole.middle[1])));
    const ring = nearest > ROOM && kind !== "grid";  // links cross the middle of a narrow grid
    if (!server) return { ...whole, ring, server: null };
    if (ring) return { ...whole, ring, server: whole.middle };
    return { ...fitted(positions, width, height, 104), ring, server: [width / 2, 30] };
  }

  page.geometry = (network, width, height, { scale, dx, dy }) => {
    const { places, middle, server, ring } = withServer(network, width, height);
    const enlarged = ([x, y]) => [x * scale + dx, y * scale + dy];
    const points = places.map(enlarged);
    const radius = Math.max(2, Math.min(13, 0.15 * scale * Math.sqrt((width * height) / places.length)));
    return {
      x: Float32Array.from(points, ([x]) => x),
      y: Float32Array.from(points, ([, y]) => y),
      server: server && enlarged(server),
      middle: enlarged(middle),
      ring, radius, width, height,
    };
  };

  page.spot = ({ x, y, server, middle }, place) => (place < 0 ? server ?? middle : [x[place], y[place]]);

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
    const { x, y, radius, width, height, server, middle, ring } = geometry;
    const inside = [...names.keys()].filter((k) => x[k] > 0 && x[k] < width && y[k] > 0 && y[k] < height);
    if (inside.length > MOST_NAMES) return [];
    const taken = inside.map((k) => [x[k] - radius, y[k] - radius, x[k] + radius, y[k] + radius]);
    if (server) taken.push([server[0] - 38, server[1] - 18, server[0] + 38, server[1] + 36]);
    const clear = (box) => box[0] > 2 && box[1] > 2 && box[2] < width - 2 && box[3] < height - 2
      && taken.every((other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3]);
    const placed = [];
    inside.forEach((client) => {
      const text = page.short(names[client]);
      const half = pen.measureText(text).width / 2 + 2;
      const gap = radius + 10;
      const outward = ([dx, dy]) => Math.sign(dx) * (x[client] - middle[0]) + Math.sign(dy) * (y[client] - middle[1]);
      const spots = [[0, gap], [0, -gap], [gap + half - 4, 0], [-gap - half + 4, 0]];
      if (ring) spots.sort((a, b) => outward(b) - outward(a));
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
