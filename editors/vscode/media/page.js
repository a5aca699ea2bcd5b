// What a page does by itself: it draws what the extension sends, sends back what was pressed together with what is filled
// in and ticked, and keeps its place. What a press means is decided by the extension.
(() => {
  const vscode = acquireVsCodeApi();
  const main = document.querySelector("main");
  const mac = /Mac/.test(navigator.platform);

  // A press that was meant for the page before must not count: a new page ignores presses for this long, and a press
  // within that time starts it again, so a key that is held down or hammered never gets through.
  const DEAD_MS = 500;
  let deadTimer;
  function goDead() {
    document.body.classList.remove("live");
    clearTimeout(deadTimer);
    deadTimer = setTimeout(() => document.body.classList.add("live"), DEAD_MS);
  }

  let key;
  addEventListener("message", ({ data }) => {
    if (typeof data?.html !== "string") {
      return;
    }
    const template = document.createElement("template");
    template.innerHTML = data.html;
    if (mac) {
      for (const name of template.content.querySelectorAll("kbd")) {
        name.textContent = name.textContent.replace("Ctrl+", "⌘").replace("Delete", "⌫");
      }
    }
    if (key === data.key) {
      const { ticked } = collect();
      const before = items();
      const view = document.activeElement?.dataset.view;
      merge(main, template.content);
      tick(ticked);
      // The switch between views is drawn again; a user of the keyboard stays on it.
      if (view) {
        main.querySelector(`[data-view="${CSS.escape(view)}"]`)?.focus();
      }
      if (items() !== before) {
        goDead();
      }
    } else {
      key = data.key;
      main.replaceChildren(template.content);
      restore();
      goDead();
      if (document.hasFocus()) {
        focusHeading();
      }
    }
    if (data.focus && !document.activeElement?.matches("input, select")) {
      focusHeading();
    }
    count();
  });

  /** The heading does nothing when Enter or Space is pressed on it. */
  function focusHeading() {
    window.focus();
    main.querySelector("h1")?.focus();
  }

  /** Makes `old` equal to `fresh`, and leaves alone whatever is equal already: it may have the focus or hold typed text. */
  function merge(old, fresh) {
    const before = [...old.childNodes];
    const after = [...fresh.childNodes];
    after.forEach((node, place) => {
      const known = before[place];
      if (!known) {
        old.append(node);
      } else if (known.isEqualNode(node)) {
        return;
      } else if (known.nodeName === node.nodeName && node.nodeType === 1 && !node.matches("button, a, input, select")) {
        for (const name of known.getAttributeNames()) {
          known.removeAttribute(name);
        }
        for (const name of node.getAttributeNames()) {
          known.setAttribute(name, node.getAttribute(name));
        }
        merge(known, node);
      } else {
        known.replaceWith(node);
      }
    });
    for (const node of before.slice(after.length)) {
      node.remove();
    }
  }

  // VS Code throws a hidden page away. What was typed and ticked comes back with the page it belongs to.
  function restore() {
    const saved = vscode.getState();
    if (saved?.key !== key) {
      scrollTo(0, 0);
      return;
    }
    for (const field of main.querySelectorAll("input[name], select[name]")) {
      field.value = saved.fields?.[field.name] ?? field.value;
    }
    tick(saved.ticked ?? []);
    scrollTo(0, saved.scroll ?? 0);
  }

  function save() {
    vscode.setState({ key, scroll: scrollY, ...collect() });
  }

  function items() {
    return [...main.querySelectorAll("input[data-item]")].map(box => box.dataset.item).join();
  }

  function tick(ticked) {
    for (const box of main.querySelectorAll("input[data-item]")) {
      box.checked = ticked.includes(box.dataset.item);
    }
  }

  function collect() {
    const fields = {};
    for (const field of main.querySelectorAll("[name]")) {
      fields[field.name] = field.value;
    }
    const ticked = [...main.querySelectorAll("input[data-item]:checked")].map(box => box.dataset.item);
    const changed = {};
    for (const field of main.querySelectorAll("select[data-tool]")) {
      if (field.value !== field.querySelector("option[selected]")?.value) {
        changed[field.dataset.tool] = field.value;
      }
    }
    return { fields, ticked, changed };
  }

  /** A button that applies to several things says to how many. */
  function count() {
    const { ticked, changed } = collect();
    const counts = { ticked: ticked.length, changed: Object.keys(changed).length };
    for (const button of main.querySelectorAll("button[data-count]")) {
      const number = counts[button.dataset.count];
      button.disabled = number === 0;
      button.querySelector(".count").textContent = String(number);
    }
  }

  function press(button) {
    if (!document.body.classList.contains("live")) {
      goDead();
      return;
    }
    if (!button.disabled) {
      vscode.postMessage({ ...button.dataset, ...collect() });
      if (button.dataset.send === "answer") {
        goDead();
      }
    }
  }

  document.addEventListener("click", event => {
    const button = event.target.closest("button[data-send], a[data-send]");
    if (button) {
      event.preventDefault();
      press(button);
    }
  });

  // The keys that a button names. They answer the question that is on the page, as the button itself does.
  document.addEventListener("keydown", event => {
    if (event.isComposing) {
      return;
    }
    const field = event.target.closest?.("input, select");
    const control = event.ctrlKey || event.metaKey;
    let wanted;
    if (field) {
      wanted = event.key === "Enter" && !control && field.dataset.enter;
    } else if (control && !event.altKey && !event.shiftKey) {
      wanted = { Enter: "yes", Delete: "no", Backspace: "no" }[event.key];
    }
    const button = wanted && main.querySelector(`button[data-key="${wanted}"]`);
    if (button) {
      event.preventDefault();
      if (!event.repeat) {
        press(button);
      }
    }
  });

  document.addEventListener("change", event => {
    const field = event.target;
    if (field.matches("input[data-all]")) {
      for (const box of main.querySelectorAll(`input[data-group="${CSS.escape(field.dataset.all)}"]`)) {
        box.checked = field.checked;
      }
    }
    count();
    save();
  });
  document.addEventListener("input", save);
  addEventListener("scroll", save);
  for (const kind of ["focus", "blur"]) {
    addEventListener(kind, () => vscode.postMessage({ send: kind }));
  }
  vscode.postMessage({ send: "ready" });
})();
