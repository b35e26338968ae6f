// Each question and each answer carries this script. It brings to life what is there and not yet alive.
{
  const name = (key) => `connection-bottlenecks: guess ${key}`;
  // a browser may forbid storage (a private window, a sandboxed frame): then the guess lives as long as the page
  const held = (window.predictionsOfThisPage ??= {});
  const read = (key) => {
    try {
      return localStorage.getItem(name(key)) ?? held[key] ?? "";
    } catch {
      return held[key] ?? "";
    }
  };
  const write = (key, value) => {
    held[key] = value;
    try {
      localStorage.setItem(name(key), value);
    } catch {}
    document.dispatchEvent(new CustomEvent("guess", { detail: key }));
  };

  for (const root of document.querySelectorAll(".prediction[data-asks]:not([data-alive])")) {
    root.dataset.alive = "";
    const key = root.dataset.asks,
      inputs = [...root.querySelectorAll("input")],
      note = root.querySelector(".prediction-kept");
    const before = read(key);
    for (const input of inputs) {
      if (input.type === "radio") input.checked = input.value === before;
      else input.value = before;
      input.addEventListener("keydown", (event) => event.stopPropagation()); // the keys of a notebook
      input.addEventListener("input", () => {
        write(key, input.value);
        note.hidden = !input.value;
      });
    }
    note.hidden = !before;
  }
  for (const root of document.querySelectorAll(".prediction[data-answers]:not([data-alive])")) {
    root.dataset.alive = "";
    const guess = root.querySelector(".prediction-guess");
    const show = () => {
      const value = read(root.dataset.answers);
      const says = JSON.parse(root.dataset.says); // the options in the page's language
      guess.textContent = value ? `${says[value] ?? value}${root.dataset.unit}` : "";
      for (const each of root.querySelectorAll(".prediction-mine")) each.hidden = !value; // the question alone
    };
    document.addEventListener("guess", show);
    show();
  }
}
