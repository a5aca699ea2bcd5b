/** Shows the user what went wrong, with a button for what can be done about it. */

import { commands, window } from "vscode";
import type { ErrorData, Remedy } from "./protocol";
import type { Sidecar } from "./sidecar";
import { sentence } from "./text";

interface Failure {
  message: string;
  data: Partial<ErrorData>;
  cancelled: boolean;
}

/** LSP's code for a request that was cancelled. */
const CANCELLED = -32800;

export function failureOf(error: unknown): Failure {
  const { message, data, code } = (error ?? {}) as { message?: string; data?: ErrorData; code?: number };
  return {
    message: message || String(error),
    data: typeof data === "object" && data !== null ? data : {},
    cancelled: code === CANCELLED || data?.kind === "cancelled",
  };
}

/** Shows an error and offers a remedy. Shows nothing if the user cancelled the request. */
export async function showError(error: unknown, sidecar?: Sidecar): Promise<undefined> {
  const { message, data, cancelled } = failureOf(error);
  if (cancelled) {
    return;
  }
  sidecar?.log.warn(message);
  await offer(window.showErrorMessage, sentence(message), data.remedy);
}

/** Shows a message with a button for what can be done about it. */
export async function offer(show: typeof window.showErrorMessage, text: string, remedy?: Remedy): Promise<void> {
  if (remedy && (await show(text, remedy.title)) === remedy.title) {
    const ours = remedy.command.startsWith("mcpSidecar.");
    await (ours ? commands.executeCommand(remedy.command) : commands.executeCommand("mcpSidecar.perform", remedy));
  } else if (!remedy) {
    await show(text);
  }
}
