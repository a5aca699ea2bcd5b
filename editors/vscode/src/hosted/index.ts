/**
 * The MCP server `vscode`, which lives in this window. A config file reaches it by `{ "type": "sdk", "name": "vscode" }`;
 * the setting `mcpSidecar.editorServer` adds it without one.
 */

import type { ExtensionContext } from "vscode";
import { setting } from "../settings";
import type { Client, Sidecar } from "../sidecar";
import { tools } from "./editor";
import { answer, type Message, type Served } from "./server";

const NAME = "vscode";

/** Must be called before the sidecar starts, because the server is announced in `initialize`. */
export function registerHosted(context: ExtensionContext, sidecar: Sidecar): void {
  const served: Served = {
    name: NAME,
    version: String(context.extension.packageJSON.version),
    instructions: "What is open in the user's VS Code, including unsaved changes. Lines count from 1.",
    tools,
  };
  sidecar.add({
    abilities: () => ({ sdkServers: [NAME] }),
    attach: client => listen(client, served),
    ready: () => {
      if (setting("editorServer")) {
        const params = { servers: { [NAME]: { type: "sdk", name: NAME } } };
        sidecar.command("mcp.servers.set", params).catch(error => sidecar.log.error(`no server \`${NAME}\`: ${error}`));
      }
    },
  });
}

function listen(client: Client, served: Served): void {
  client.onRequest("mcp/sdk/message", ({ server, message }) => {
    if (server === NAME) {
      void reply(client, served, message as Message);
    }
    return {};
  });
  client.onRequest("mcp/sdk/close", () => ({}));
}

/** The MCP response is a separate message, after the `{}` that acknowledges the request. */
async function reply(client: Client, served: Served, message: Message): Promise<void> {
  const said = await answer(served, message);
  if (said) {
    // A sidecar that has stopped in between needs no response.
    await client.sendRequest("mcp/sdk/message", { server: NAME, message: said }).catch(() => {});
  }
}
