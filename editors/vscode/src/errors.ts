/** Shows the user what went wrong, with a button for what can be done about it. */

import { commands, window } from "vscode";
import type { ErrorData } from "./protocol";
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
export function remedy({ kind, server }: Partial<ErrorData>): Remedy | undefined {
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
