// A button beside each command that copies it. Without scripts a click selects all of it.
const say = (button, word) => {
  button.textContent = word;
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
};

for (const box of document.querySelectorAll(".do")) {
  const pre = box.querySelector("pre");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      say(button, "Copied");
    } catch {
      // A page without TLS may not write to the clipboard: what is selected can be copied by hand.
      getSelection().selectAllChildren(pre);
      say(button, "Selected: press Ctrl+C");
    }
  });
  box.classList.add("live-copy");
  box.append(button);
}
