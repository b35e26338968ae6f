(() => {
  const chips = [...document.querySelectorAll(".card-chips button")];
  const chosen = kind => new Set(
    chips.filter(c => c.dataset.kind === kind && c.getAttribute("aria-pressed") === "true").map(c => c.dataset.value));
  function update() {
    const rows = [...document.querySelectorAll(".card-row")];
    const kinds = ["verdict", "kind", "chapter"].map(kind => ({ kind, values: chosen(kind) }));
    let left = 0;
    rows.forEach(row => {
      row.hidden = kinds.some(({ kind, values }) => values.size && !values.has(row.dataset[kind]));
      left += Number(!row.hidden);
    });
    document.querySelectorAll(".card-paper").forEach(paper => {
      paper.hidden = !paper.querySelector(".card-row:not([hidden])");
    });
    document.querySelector(".card-shown").textContent = `${left} of ${rows.length} rows are shown.`;
  }
  function open() {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (row?.matches(".card-row, .card-part")) {
      row.open = row.closest(".card-row").open = true;
      row.scrollIntoView({ block: "center" });
    }
  }
  document.addEventListener("toggle", ({ target }) => {  // what stands in a template is written when it is asked for
    const opened = target instanceof Element && target.matches(".card-more[open]");
    const template = opened && target.querySelector("template");
    if (template) template.replaceWith(template.content);
  }, true);
  chips.forEach(chip => chip.addEventListener("click", () => {
    chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    update();
  }));
  addEventListener("hashchange", open);
  addEventListener("load", open);
})();
