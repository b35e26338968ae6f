(() => {
  const chips = [...document.querySelectorAll(".card-chips button")];
  const chosen = kind => new Set(
    chips.filter(c => c.dataset.kind === kind && c.getAttribute("aria-pressed") === "true").map(c => c.dataset.value));
  function update() {
    const rows = [...document.querySelectorAll(".card-table>tbody>tr")];
    const kinds = ["verdict", "kind", "chapter"].map(kind => [kind, chosen(kind)]);
    let left = 0;
    rows.forEach(row => {
      row.hidden = kinds.some(([kind, values]) => values.size && !values.has(row.dataset[kind]));
      left += !row.hidden;
    });
    document.querySelector(".card-shown").textContent = `${left} of ${rows.length} claims are shown.`;
  }
  chips.forEach(chip => chip.addEventListener("click", () => {
    chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") !== "true");
    update();
  }));
})();
