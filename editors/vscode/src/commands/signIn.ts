/**
 * Signing in to a server. If the browser cannot reach the machine of the sidecar, as with SSH or a container, the user
 * pastes the address of the page that it cannot load. That address contains a code: it is passed on, and not shown or kept.
 */

import { type InputBox, window } from "vscode";
import { failureOf } from "../errors";
import type { Commands } from "../protocol";
import { quoted, sentence } from "../text";
import { type App, busy, pick, register } from "./app";

const PASTE = "mcpSidecar.server.pasteAddress";

/** The sign-ins that are under way, by server, each with the box for its address while it is open. */
const underWay = new Map<string, { box?: InputBox }>();

export function signInCommands(app: App): void {
  register(app, PASTE, async (given?: string) => {
    const items = [...underWay.keys()].map(server => ({ label: server, value: server }));
    const server = given ?? (await pick(items, "Paste the address for which server?", "No sign-in is in progress."));
    if (server) {
      paste(app, server);
    }
  });
}

export async function signIn(app: App, params: Commands["mcp.server.auth"]["params"]): Promise<unknown> {
  const { server } = params;
  const signIn: { box?: InputBox } = {};
  underWay.set(server, signIn);
  const link = `command:${PASTE}?${encodeURIComponent(JSON.stringify([server]))}`;
  const title = `Signing in to ${quoted(server)}: continue in the browser. If it cannot load the last page, [paste the address](${link}).`;
  try {
    return await busy(title, (_, token) => app.sidecar.command("mcp.server.auth", params, token));
  } finally {
    signIn.box?.hide();
    if (underWay.get(server) === signIn) {
      underWay.delete(server);
    }
  }
}

/** Asks for the address until one is accepted, the user closes the box, or the sign-in ends. */
function paste(app: App, server: string): void {
  const signIn = underWay.get(server);
  if (!signIn) {
    window.showInformationMessage(`No sign-in to ${quoted(server)} is in progress.`);
    return;
  }
  signIn.box?.hide();
  const box = Object.assign(window.createInputBox(), {
    title: `Sign in to ${quoted(server)}`,
    prompt: "Paste the address of the page that the browser cannot load. It begins with http://127.0.0.1.",
    password: true,
    ignoreFocusOut: true,
  });
  signIn.box = box;
  box.onDidChangeValue(() => {
    box.validationMessage = "";
  });
  box.onDidAccept(async () => {
    box.busy = true;
    try {
      await app.sidecar.command("mcp.server.auth.paste", { server, address: box.value });
      box.hide();
    } catch (error) {
      box.validationMessage = sentence(failureOf(error).message);
    }
    box.busy = false;
  });
  box.onDidHide(() => box.dispose());
  box.show();
}
