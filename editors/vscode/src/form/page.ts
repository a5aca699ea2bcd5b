/** The fields of a form as a list on a page. Pure. */

import type { Field } from "../protocol";
import { type Html, html } from "../web/html";

export function fieldList(fields: readonly Field[]): Html {
  const row = (field: Field) => {
    const inside = field.fields ?? field.item?.fields ?? [];
    return html`<dt>${field.title}</dt><dd>${field.rule}${field.required && ", required"}
<span class="soft">${field.help}</span>${inside.length > 0 && fieldList(inside)}</dd>`;
  };
  return fields.length > 0 ? html`<dl>${fields.map(row)}</dl>` : html`<p class="soft">none</p>`;
}
