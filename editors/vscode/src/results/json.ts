/** JSON in results: indented without changing any value, and compared with what the texts already say. Pure. */

import { isDeepStrictEqual } from "node:util";
import type { Content } from "../protocol";

/** One piece of JSON: a string, a bracket, or a number or word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** An object or a list as indented JSON; `undefined` for any other text. Numbers keep every digit. */
export function formatted(text: string): string | undefined {
  if (!/^\s*[{[]/.test(text) || parsed(text) === undefined) {
    return undefined;
  }
  const tokens = text.match(TOKEN) ?? [];
  const parts: string[] = [];
  let depth = 0;
  const line = () => parts.push("\n", "  ".repeat(depth));
  tokens.forEach((token, place) => {
    const isEmpty = /^[[{]$/.test(tokens[place - 1] ?? "") && /^[\]}]$/.test(token);
    if (/^[\]}]$/.test(token)) {
      depth--;
      isEmpty || line();
    }
    parts.push(token);
    if (/^[[{]$/.test(token)) {
      depth++;
      /^[\]}]$/.test(tokens[place + 1] ?? "") || line();
    } else if (token === ",") {
      line();
    } else if (token === ":") {
      parts.push(" ");
    }
  });
  return parts.join("");
}

/** Whether structured content says no more than the texts, as most servers send both. */
export function repeats(content: readonly Content[], structured: unknown): boolean {
  const texts = content.flatMap(one => (one.type === "text" ? [one.text ?? ""] : []));
  const says = (value: unknown, text: string) =>
    isDeepStrictEqual(value, parsed(text)) || (typeof value === "string" && value.trimEnd() === text.trimEnd());
  const isInTexts = (value: unknown): boolean =>
    says(value, texts.join("\n")) ||
    (Array.isArray(value) &&
      value.length === texts.length &&
      value.every((one, place) => says(one, texts[place] ?? "")));
  // Many servers wrap a plain value, as `{ "result": … }`.
  const values = structured && typeof structured === "object" ? Object.values(structured) : [];
  return texts.length > 0 && (isInTexts(structured) || (values.length === 1 && isInTexts(values[0])));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
