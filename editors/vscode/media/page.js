// All that a page of ours does by itself: sends what was pressed, with what is filled in and ticked, and keeps its place.
// What the press means is decided by the extension.
(() => {
  const vscode = acquireVsCodeApi();
  // A press that was meant for what stood here a moment ago must not count.
  const DEAD_MS = 400;
  setTimeout(() => document.body.classList.add("live"), DEAD_MS);

  // The page is made anew when what it shows has changed; place and ticks stay.
  const before = vscode.getState() ?? {};
  if (before.page === document.title) {
    scrollTo(0, before.scroll ?? 0);
    for (const box of document.querySelectorAll("input[data-item]")) {
      box.checked = before.ticked?.includes(box.dataset.item) ?? false;
    }
  }
  const keep = () => vscode.setState({ page: document.title, scroll: scrollY, ticked: collect().ticked });
  addEventListener("scroll", keep);

  function collect() {
    const fields = {};
    for (const field of document.querySelectorAll("[name]")) {
      fields[field.name] = field.value;
    }
    const ticked = [...document.querySelectorAll("input[data-item]:checked")].map(box => box.dataset.item);
    return { fields, ticked };
  }

  function send(element) {
    vscode.postMessage({ ...element.dataset, value: element.value, ...collect() });
  }

  document.addEventListener("click", event => {
    const button = event.target.closest("button[data-send], a[data-send]");
    if (!button) {
      return;
    }
    event.preventDefault();
    if (document.body.classList.contains("live")) {
      send(button);
    }
  });

  document.addEventListener("change", event => {
    const field = event.target;
    if (field.matches("input[data-all]")) {
      for (const box of document.querySelectorAll(`input[data-group="${CSS.escape(field.dataset.all)}"]`)) {
        box.checked = field.checked;
      }
    } else if (field.matches("select[data-send]")) {
      send(field);
    }
    keep();
  });
})();
