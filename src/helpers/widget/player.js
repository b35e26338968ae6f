// Each widget carries this script. It brings to life the figures that are there and not yet alive: its own.
for (const root of document.querySelectorAll("figure.explore:not([data-alive])")) {
  root.dataset.alive = "";
  const { names, frames } = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const inputs = [...root.querySelectorAll("input, select")];
  const frame = root.querySelector(".explore-frame");
  const finding = root.querySelector(".explore-finding");
  let timer = null;
  let stop = () => {};

  const index = (input) =>
    input.type === "checkbox"
      ? Number(input.checked)
      : input.tagName === "SELECT"
        ? input.selectedIndex
        : Number(input.value);

  const update = () => {
    let at = 0;
    inputs.forEach((input, k) => {
      at = at * names[k].length + index(input);
      if (input.type !== "range") return;
      input.setAttribute("aria-valuetext", names[k][index(input)]);
      input.closest(".explore-control").querySelector("output").textContent = names[k][index(input)];
    });
    [frame.innerHTML, finding.innerHTML] = frames[at];
  };

  const say = (button, icon, word) => {
    const named = "named" in button.dataset ? `: ${button.dataset.label}` : ""; // one of several
    button.textContent = `${icon} ${word}${named}`;
    button.setAttribute("aria-label", `${word}: ${button.dataset.label}`);
  };

  const play = (button) => {
    const input = inputs[Number(button.dataset.plays)];
    const last = Number(input.max);
    const next = () => {
      input.value = Number(input.value) + 1;
      update();
    };
    const ended = Number(input.value) === last;
    if (ended) {
      input.value = 0;
      update();
    }
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      if (!ended) next(); // nothing moves by itself: a press is a step
      return;
    }
    say(button, "■", "Stop");
    stop = () => {
      clearInterval(timer);
      timer = null;
      say(button, "▶", "Play");
      stop = () => {};
    };
    timer = setInterval(() => {
      next();
      if (Number(input.value) === last) stop();
    }, 900);
  };

  for (const input of inputs) {
    input.addEventListener("input", () => {
      stop();
      update();
    });
    input.addEventListener("keydown", (event) => {
      const own = input.type === "checkbox" ? /^ / : /^(Arrow|Home|End|Enter| )/;
      if (root.closest(".jp-Notebook, #notebook-container") || own.test(event.key)) event.stopPropagation(); // a deck has all others, PageDown of every clicker first
    });
  }
  for (const button of root.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const playing = button.textContent.startsWith("■");
      stop();
      if (!playing) play(button);
    });
  }
}
