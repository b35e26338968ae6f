() =>
  [...document.querySelectorAll(".bd-article section > p")]
    .filter((p) => p.textContent.length > 300 && !p.querySelector("mjx-container"))
    .map((p) => {
      const range = document.createRange();
      range.selectNodeContents(p);
      const tops = [...range.getClientRects()].map((box) => box.bottom).sort((a, b) => a - b);
      const lines = tops.filter((top, k) => k === 0 || top - tops[k - 1] > 12).length;
      return p.textContent.length / lines;
    })
