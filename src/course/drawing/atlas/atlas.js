// Each atlas carries this script. It brings to life the figures that are there and not yet alive: its own.
for (const root of document.querySelectorAll("figure.atlas:not([data-alive])")) {
  root.dataset.alive = "";
  const { words, heads, sorts, columns, sheet, verb } = JSON.parse(
    root.querySelector('script[type="application/json"]').textContent,
  );
  const n = words.length;
  const [sort, head] = root.querySelectorAll("select");
  const [map, arcs] = root.querySelectorAll("canvas");
  const tokens = [...root.querySelectorAll(".atlas-tokens button")];
  const finding = root.querySelector(".atlas-finding");
  let token = n - 1;
  let weights = null; // of every head, one after the other, from the sheet's pixels

  const weight = (h, i, j) => weights[(h * n + i) * n + j];

  const order = () => {
    const { scores } = sorts[sort.selectedIndex];
    const ranked = heads.map((_, k) => k).sort((a, b) => scores[b] - scores[a] || a - b);
    const chosen = head.value;
    head.replaceChildren(...ranked.map((k) => new Option(`${heads[k]}: ${scores[k].toFixed(2)}`, k)));
    head.value = chosen;
  };

  const fit = (canvas) => {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = pen.strokeStyle = getComputedStyle(canvas).color;
    return { pen, width, height };
  };

  const drawMap = (h) => {
    const { pen, width } = fit(map);
    const side = width / n;
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j <= i; j += 1) {
        pen.fillStyle = `rgba(0, 114, 178, ${Math.sqrt(weight(h, i, j))})`;
        pen.fillRect(j * side, i * side, side + 0.5, side + 0.5);
      }
    }
    pen.strokeStyle = "#d55e00";
    pen.lineWidth = 2;
    pen.strokeRect(1, token * side, width - 2, side);
  };

  const drawArcs = (h) => {
    const { pen, width, height } = fit(arcs);
    const step = width / n;
    const at = (k) => (k + 0.5) * step;
    const floor = height - 8;
    for (let i = 1; i < n; i += 1) {
      for (let j = 0; j < i; j += 1) {
        const w = weight(h, i, j);
        if (w < 0.03) continue;
        const own = i === token;
        pen.strokeStyle = own ? "#d55e00" : getComputedStyle(arcs).color;
        pen.globalAlpha = own ? 1 : 0.35 * w;
        pen.lineWidth = 0.5 + 5 * w;
        pen.beginPath();
        pen.ellipse(
          (at(i) + at(j)) / 2,
          floor,
          (at(i) - at(j)) / 2,
          (floor - 6) * Math.min(1, (i - j) / n + 0.1),
          0,
          Math.PI,
          0,
        );
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    for (let k = 0; k < n; k += 1) pen.fillRect(at(k) - 2, floor - 2, 4, 4);
  };

  const update = () => {
    if (!weights) return;
    const h = Number(head.value);
    const row = words.map((_, j) => (j <= token ? weight(h, token, j) : 0));
    const most = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, Math.min(3, token + 1));
    const looks = most.map(([w, j]) => `“${words[j]}” (${j + 1}) ${w.toFixed(2)}`).join(", ");
    finding.textContent = `${heads[h]}: “${words[token]}” (${token + 1}) ${verb} ${looks}.`;
    tokens.forEach((button, j) => {
      button.setAttribute("aria-pressed", String(j === token));
      button.style.setProperty("--weight", row[j]);
    });
    if (arcs.clientHeight > 20) {
      drawMap(h);
      drawArcs(h);
    } // else it is on a slide that is not shown
    for (const canvas of [map, arcs])
      canvas.setAttribute("aria-label", `${canvas.dataset.what}. ${finding.textContent}`);
  };

  const choose = (k) => {
    token = k;
    update();
  };

  const picture = new Image();
  picture.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height];
    const pen = canvas.getContext("2d");
    pen.drawImage(picture, 0, 0);
    const pixels = pen.getImageData(0, 0, picture.width, picture.height).data;
    weights = new Float32Array(heads.length * n * n);
    heads.forEach((_, h) => {
      const [x, y] = [(h % columns) * n, Math.floor(h / columns) * n];
      for (let i = 0; i < n; i += 1)
        for (let j = 0; j < n; j += 1)
          weights[(h * n + i) * n + j] = (pixels[4 * ((y + i) * picture.width + x + j)] / 255) ** 2;
    });
    update();
  };
  picture.src = sheet;

  sort.addEventListener("change", () => {
    order();
    head.selectedIndex = 0;
    update();
  });
  head.addEventListener("change", update);
  for (const input of [sort, head])
    input.addEventListener("keydown", (event) => {
      if (root.closest(".jp-Notebook, #notebook-container") || /^(Arrow|Home|End|Enter| )/.test(event.key))
        event.stopPropagation(); // a deck has all others
    });
  tokens.forEach((button, k) => {
    for (const event of ["click", "focus", "pointerenter"]) button.addEventListener(event, () => choose(k));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.stopPropagation(); // a deck turns its page at arrows
      event.preventDefault();
      tokens[Math.min(n - 1, Math.max(0, k + step))].focus();
    });
  });
  map.addEventListener("pointermove", (event) =>
    choose(Math.min(n - 1, Math.floor((event.offsetY / map.clientHeight) * n))),
  );
  new ResizeObserver(update).observe(root); // a deck's slide has no size before it is shown
}
