// Tokens on the picture: where they rest, the hops under way, and the last ones, fading.
{
  const TRAIL = 7;
  const SIZE = 10;
  const ease = (t) => t * t * (3 - 2 * t);
  const between = ([ax, ay], [bx, by], part) => [ax + (bx - ax) * part, ay + (by - ay) * part];

  page.drawTrails = ({ pen, geometry, accent }, steps, fraction) => {
    const { sender, receiver, token } = steps.trace;
    const line = (hop, alpha, part) => {
      const from = page.spot(geometry, sender[hop]);
      pen.strokeStyle = steps.messages ? accent : page.strong(token[hop]);
      pen.globalAlpha = Math.max(0, alpha);
      pen.beginPath();
      pen.moveTo(...from);
      pen.lineTo(...between(from, page.spot(geometry, receiver[hop]), part));
      pen.stroke();
    };
    pen.lineWidth = 3;
    pen.lineCap = "round";
    for (const trail of steps.messages ? [] : steps.trails) {
      trail.forEach((hop, i) => line(hop, 0.55 * (1 - (trail.length - 1 - i + fraction) / TRAIL), 1));
    }
    if (fraction > 0) for (const hop of steps.moving()) line(hop, 0.6, ease(fraction));
    pen.globalAlpha = 1;
  };

  page.drawTokens = (picture, steps, fraction) => {
    if (steps.messages) drawMessages(picture, steps, fraction);
    else drawRoaming(picture, steps, fraction);
  };

  /** Of a method without tokens: a dot for each message under way. */
  function drawMessages({ pen, geometry, accent, card }, steps, fraction) {
    if (fraction === 0) return;
    pen.fillStyle = accent;
    pen.strokeStyle = card;
    pen.lineWidth = 1.5;
    const { sender, receiver } = steps.trace;
    for (const hop of steps.moving()) {
      const [from, to] = [page.spot(geometry, sender[hop]), page.spot(geometry, receiver[hop])];
      pen.beginPath();
      pen.arc(...between(from, to, ease(fraction)), 4.5, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    }
  }

  function drawRoaming(picture, steps, fraction) {
    const { geometry } = picture;
    const { sender, receiver, token: movers } = steps.trace;
    const moving = new Map(fraction > 0 ? Array.from(steps.moving(), (hop) => [movers[hop], hop]) : []);
    const crowds = new Map();
    steps.place.forEach((place, token) => {
      if (!moving.has(token)) crowds.set(place, [...(crowds.get(place) ?? []), token]);
    });
    for (const [place, tokens] of crowds) drawCrowd(picture, place, tokens);
    for (const [token, hop] of moving) {
      const [from, to] = [page.spot(geometry, sender[hop]), page.spot(geometry, receiver[hop])];
      drawToken(picture, token, ...between(from, to, ease(fraction)));
    }
  }

  /** Tokens that rest at one place: in a row below the server, in a ring around a client. */
  function drawCrowd(picture, place, tokens) {
    const { geometry } = picture;
    const [cx, cy] = page.spot(geometry, place);
    const gap = Math.min(2 * SIZE + 3, (geometry.width - 40) / tokens.length);
    const reach = Math.max(geometry.radius, SIZE / Math.sin(Math.PI / tokens.length));
    tokens.forEach((token, i) => {
      const angle = (2 * Math.PI * i) / tokens.length - Math.PI / 2;
      if (place < 0) drawToken(picture, token, cx + (i - (tokens.length - 1) / 2) * gap, cy + 25);
      else if (tokens.length === 1) drawToken(picture, token, cx, cy);
      else drawToken(picture, token, cx + reach * Math.cos(angle), cy + reach * Math.sin(angle));
    });
  }

  function drawToken({ pen, card }, token, x, y) {
    const colour = page.strong(token);
    pen.beginPath();
    pen.arc(x, y, SIZE, 0, 2 * Math.PI);
    pen.fillStyle = colour;
    pen.fill();
    pen.lineWidth = 2;
    pen.strokeStyle = card;
    pen.stroke();
    pen.fillStyle = page.readable(colour);
    pen.font = "600 11px system-ui, 'DejaVu Sans', sans-serif";
    pen.fillText(String(token), x, y + 0.5);
  }
}
