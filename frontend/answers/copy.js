// For the reader's own assistant: a button that copies the page as Markdown, and with exercises a tutor's file.
import { say } from "./words.js";

const markdown = document.querySelector("link[rel=alternate][type='text/markdown']");
const title = document.querySelector("main article h1");
if (markdown && title && location.protocol !== "file:") {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-page";
  button.textContent = say("Copy page");
  button.addEventListener("click", async () => {
    const text = await (await fetch(markdown.href)).text();
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = say("Copied");
    } catch {
      location.href = markdown.href; // the browser lets no one copy: the text itself
    }
    setTimeout(() => (button.textContent = say("Copy page")), 2000);
  });
  title.closest("section").append(button); // at the foot: below the title it would stand before the first sentence
  const tutor = document.querySelector("link[rel=help][type='text/markdown']");
  if (tutor) {
    const link = document.createElement("a");
    link.className = "tutor-file";
    link.href = tutor.href;
    link.download = "";
    link.textContent = say("Tutor's file for your assistant");
    title.after(link);
  }
}
