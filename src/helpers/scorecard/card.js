(() => {
  const chips = [...document.querySelectorAll(".card-chips button")];
  const chosen = kind => new Set(
    chips.filter(c => c.dataset.kind === kind && c.getAttribute("aria-pressed") === "true").map(c => c.dataset.value));
  function update() {
    const rows = [...document.querySelectorAll(".card-table>tbody>tr")];
    const verdicts = chosen("verdict"), chapters = chosen("chapter");
    let left = 0;
    rows.forEach(row => {
      row.hidden = (verdicts.size && !verdicts.has(row.dataset.verdict)) || (chapters.size && !chapters.has(row.dataset.chapter));
      left += !row.hidden;
    });
    document.querySelector(".card-shown").textContent = `${left} of ${rows.length} claims are shown.`;
  }
  chips.forEach(chip => chip.addEventListener("click", () => {
    chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") !== "true");
    update();
  }));
})();
