/** HTML templates that escape every value, unless it is HTML itself. Pure. */

export class Html {
  constructor(readonly text: string) {}
}

type Value = Html | string | number | boolean | undefined | null | readonly Value[];

/** `html\`<b>${name}</b>\``: values are escaped, lists are joined, and `undefined`, `null` and `false` are empty. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(parts.map((part, place) => part + (place < values.length ? render(values[place]) : "")).join(""));
}

function render(value: Value): string {
  if (value instanceof Html) {
    return value.text;
  }
  if (Array.isArray(value)) {
    return value.map(render).join("");
  }
  return value === undefined || value === null || value === false ? "" : escaped(String(value));
}

export function escaped(text: string): string {
  const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, found => names[found] ?? found);
}

/** A diff with coloured lines. */
export function diff(text: string): Html {
  const kind = (line: string) => (line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same");
  return html`<pre class="diff">${text.split("\n").map(line => html`<span class="${kind(line)}">${line}\n</span>`)}</pre>`;
}
