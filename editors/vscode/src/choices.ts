/** Questions of the sidecar with one button for each choice, as a list: a message has room for two or three buttons. */

import { window } from "vscode";
import { type LanguageClient, ShowMessageRequest } from "vscode-languageclient/node";
import { pageSettled } from "./focus";

export function answerChoices(client: LanguageClient): void {
  client.onRequest(ShowMessageRequest.type, async ({ message, actions = [] }) => {
    const items = actions.map(action => ({
      label: action.title,
      detail: typeof action.description === "string" ? action.description : "",
      action,
    }));
    await pageSettled();
    const options = { placeHolder: message, matchOnDetail: true, ignoreFocusOut: true };
    return (await window.showQuickPick(items, options))?.action ?? null;
  });
}
