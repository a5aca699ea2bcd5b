/** What a call would do to a file, read from its arguments as the common tools name them. Pure. */

export interface Write {
  path: string;
  /** The whole new text, or pieces to be replaced in the present one. */
  text?: string;
  edits?: { before: string; after: string }[];
}

const PATHS = ["path", "file_path", "filePath", "filepath", "file", "filename", "relative_path"];
const TEXTS = ["content", "contents", "text", "file_text", "new_content", "newContent"];
const BEFORE = ["oldText", "old_text", "old_string", "oldString", "old_str", "search"];
const AFTER = ["newText", "new_text", "new_string", "newString", "new_str", "replace"];

type Given = Record<string, unknown>;

/** The file that these arguments speak of, when they do. */
export function writeOf(given: Given | undefined): Write | undefined {
  const path = first(given, PATHS);
  if (!given || path === undefined) {
    return undefined;
  }
  const listed = Array.isArray(given.edits) ? given.edits : [given];
  const edits = listed.flatMap(edit => {
    const [before, after] = [first(edit as Given, BEFORE), first(edit as Given, AFTER)];
    return before === undefined || after === undefined ? [] : [{ before, after }];
  });
  if (edits.length > 0) {
    return { path, edits };
  }
  const text = first(given, TEXTS);
  return text === undefined ? undefined : { path, text };
}

function first(given: Given | undefined, names: readonly string[]): string | undefined {
  return names.map(name => given?.[name]).find(value => typeof value === "string") as string | undefined;
}

/** The file's text after the call, as far as can be told. */
export function written(write: Write, present: string): string {
  return (write.edits ?? []).reduce(
    // A function, because a text may hold what `replace` would take for a pattern.
    (text, edit) => text.replace(edit.before, () => edit.after),
    write.text ?? present,
  );
}
