/** Foreign text inside of our own markdown: shown as it is, never as markup. */

export function plain(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>$~&]/g, "\\$&").replace(/\r?\n/g, "  \n");
}

/** As a block of code; the fence is longer than any inside. */
export function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(ticks => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
