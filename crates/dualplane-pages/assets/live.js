// Tells of new incidents; the reader decides when the list moves.
const note = document.querySelector(".live[data-events]");
if (note && "EventSource" in window) {
  let count = 0;
  const source = new EventSource(note.dataset.events);
  source.addEventListener("incident", () => {
    count += 1;
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = count === 1 ? "1 new incident: show it" : `${count} new incidents: show them`;
    note.replaceChildren(link);
    note.hidden = false;
    document.title = document.title.replace(/^(\(\d+\) )?/, `(${count}) `);
  });
  addEventListener("pagehide", () => source.close());
}
