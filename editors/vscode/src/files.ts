/** Which files are config files, by their names. The sidecar knows better; this only keeps others out of its way. */

const NAMES = ["mcp.json", ".mcp.json", "mcp.local.json"];
/** Those that VS Code reads as well, and puts its own lenses on. */
const SHARED = [".vscode/mcp.json", ".mcp.json"];

/** @param extra the names that the settings `files.project` and `files.local` add */
export function isConfigFile(path: string, extra: readonly string[] = []): boolean {
  return endsWithOne(path, [...NAMES, ...extra]);
}

/** Whether VS Code has lenses of its own for starting and stopping in this file. */
export function isSharedFile(path: string): boolean {
  return endsWithOne(path, SHARED);
}

function endsWithOne(path: string, names: readonly string[]): boolean {
  const plain = path.replaceAll("\\", "/");
  return names.some(name => plain === name || plain.endsWith(`/${name}`));
}
