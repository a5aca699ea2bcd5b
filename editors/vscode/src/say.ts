/** Says to the user what went wrong, with a button for what can be done about it. */

import { commands, window } from "vscode";
import type { FailureData } from "./protocol";
import type { Sidecar } from "./sidecar";

interface Failure {
  message: string;
  data: Partial<FailureData>;
  cancelled: boolean;
}

/** LSP's code of a request that was taken back. */
const CANCELLED = -32800;

export function failure(error: unknown): Failure {
  const { message, data, code } = (error ?? {}) as { message?: string; data?: FailureData; code?: number };
  return {
    message: message || String(error),
    data: typeof data === "object" && data !== null ? data : {},
    cancelled: code === CANCELLED || data?.kind === "cancelled",
  };
}

/** Told as a sentence with what to do next; nothing is said of what the user took back. */
export async function complain(error: unknown, sidecar?: Sidecar): Promise<undefined> {
  const { message, data, cancelled } = failure(error);
  if (cancelled) {
    return;
  }
  sidecar?.log.warn(message);
  const offer = remedy(data);
  const chosen = await window.showErrorMessage(sentence(message), ...(offer ? [offer.title] : []));
  if (offer && chosen === offer.title) {
    await commands.executeCommand(offer.command, ...offer.arguments);
  }
}

interface Remedy {
  title: string;
  command: string;
  arguments: unknown[];
}

/** What helps against a failure of this kind. */
export function remedy({ kind, server }: Partial<FailureData>): Remedy | undefined {
  const on = server ? [{ server }] : [];
  switch (kind) {
    case "needs-trust":
      return { title: "Review…", command: "mcpSidecar.server.trust", arguments: on };
    case "needs-auth":
      return { title: "Sign In…", command: "mcpSidecar.server.signIn", arguments: on };
    case "connection-failed":
    case "process-failed":
    case "protocol-error":
      return server ? { title: "Show Log", command: "mcpSidecar.server.logs", arguments: on } : undefined;
    default:
      return undefined;
  }
}

/** Errors of the sidecar begin in lower case, as they may stand inside of others. */
export function sentence(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1);
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
