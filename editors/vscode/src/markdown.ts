/** Escapes text of others for use in our markdown. */

export function plain(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>$~&]/g, "\\$&").replace(/\r?\n/g, "  \n");
}

/** A code block whose fence is longer than any fence in the text. */
export function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(ticks => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
