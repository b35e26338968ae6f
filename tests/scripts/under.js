// What stands under the list of contents, at any place to which a reader scrolls; the list has half a second to go.
async () => {
  const contents = document.querySelector('.bd-sidebar-secondary'), list = contents.querySelector('nav.page-toc');
  const notes = [...document.querySelectorAll('figcaption, .side-note, .explore-controls')];
  const frame = () => new Promise(requestAnimationFrame);
  const under = () => {
    if (contents.classList.contains('hide')) return [];
    const box = list.getBoundingClientRect();
    return notes.filter(note => {
      const own = note.getBoundingClientRect();
      return own.height && own.right > box.left + 20 && own.bottom > 60 && own.top < box.bottom;
    }).map(note => scrollY + ': ' + note.textContent.trim().slice(0, 40));
  };
  const found = [];
  for (let top = 0; top < document.documentElement.scrollHeight; top += 400) {
    scrollTo({top, behavior: 'instant'});
    for (let k = 0; k < 3 || k < 30 && under().length; k++) await frame();
    found.push(...under());
  }
  return found;
}
