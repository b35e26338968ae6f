// A text file is dropped on the page.
({ text, name }) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([text], name));
  for (const kind of ["dragover", "drop"]) document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
}
