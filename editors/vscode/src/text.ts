/** Small pieces of wording. Pure. */

/** A name of a server, a tool or an agent inside a sentence: a server named `everything` must not read as a word of it. */
export function quoted(name: string): string {
  return `\`${name}\``;
}

/** The name of a tool in commands. */
export function fullName({ server, tool }: { server: string; tool: string }): string {
  return `mcp__${server}__${tool}`;
}

/** Messages of the sidecar start in lower case, because they may be part of a longer message. */
export function sentence(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1);
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** An estimate of tokens for people: `~340`, `~1.2k`, `~12k`. */
export function tokens(count: number): string {
  if (count < 1_000) {
    return `~${count}`;
  }
  return `~${(count / 1_000).toFixed(count < 9_950 ? 1 : 0)}k`;
}

/** Control characters, characters without width and those that reverse the direction of text. */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb]|(?!\ufe0f)\p{Default_Ignorable_Code_Point}/gu;

/** Shows characters that would hide or reorder what the user is asked to allow. */
export function withoutHidden(text: string): string {
  const name = (character: string) => character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
  return text.replace(HIDDEN, found => `⟨U+${name(found)}⟩`);
}
