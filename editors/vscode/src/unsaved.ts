/** Reports unsaved changes to the sidecar, so that an approval can show how a call would change them. */

import { realpathSync } from "node:fs";
import { workspace } from "vscode";
import type { Sidecar } from "./sidecar";

/** Must be called before the sidecar starts, because the capability is part of `initialize`. */
export function registerUnsaved(sidecar: Sidecar): void {
  sidecar.add({
    abilities: () => ({ buffers: true }),
    attach: client => {
      client.onRequest("mcp/buffer", ({ file }) => {
        const open = workspace.textDocuments.find(document => document.isDirty && realPath(document.fileName) === file);
        return open ? { text: open.getText() } : {};
      });
    },
  });
}

/** Files can be opened by a link. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
