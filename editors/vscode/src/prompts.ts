/** Prompts of servers: asks for their arguments, with completion from the server, and returns their text. */

import { window } from "vscode";
import type { Prompt, PromptArgument, PromptInfo, PromptMessage } from "./protocol";
import { plainText } from "./results/page";
import type { Sidecar } from "./sidecar";

/** The text of a prompt, after asking for its arguments; `undefined` if the user cancelled. */
export async function getPrompt(sidecar: Sidecar, prompt: PromptInfo): Promise<string | undefined> {
  const given: Record<string, string> = {};
  for (const argument of prompt.arguments ?? []) {
    const value = await ask(sidecar, prompt, argument, given);
    if (value === undefined) {
      return undefined;
    }
    if (value !== "") {
      given[argument.name] = value;
    }
  }
  const params = { server: prompt.server, name: prompt.name, arguments: given };
  return promptText(await sidecar.command("mcp.prompt.get", params));
}

/** The messages one after another, with their roles if there is more than one role. */
export function promptText({ messages }: Prompt): string {
  const both = messages.some(message => message.role !== "user");
  const text = ({ role, content }: PromptMessage) =>
    `${both ? `**${role}:** ` : ""}${plainText({ content: [content].flat() })}`;
  return messages.map(text).join("\n\n");
}

async function ask(sidecar: Sidecar, prompt: PromptInfo, argument: PromptArgument, given: Record<string, string>) {
  const title = prompt.title ?? prompt.name;
  const about = `${argument.name}${argument.required ? "" : ", optional"}`;
  const placeHolder = argument.description ? `${about}: ${argument.description}` : about;
  const values = await offered(sidecar, prompt, argument.name, given);
  if (values.length === 0) {
    return window.showInputBox({
      title,
      prompt: placeHolder,
      ignoreFocusOut: true,
      validateInput: text => (argument.required && text === "" ? "required" : undefined),
    });
  }
  const other = "$(edit) another value…";
  const none = "$(circle-slash) omit it";
  const items = [...values, other, ...(argument.required ? [] : [none])];
  const chosen = await window.showQuickPick(items, { title, placeHolder, ignoreFocusOut: true });
  if (chosen === other) {
    return window.showInputBox({ title, prompt: placeHolder, ignoreFocusOut: true });
  }
  return chosen === none ? "" : chosen;
}

/** Values that the server offers; most offer none. */
async function offered(sidecar: Sidecar, prompt: PromptInfo, name: string, given: Record<string, string>) {
  const params = {
    server: prompt.server,
    ref: { type: "ref/prompt", name: prompt.name },
    argument: { name, value: "" },
    ...(Object.keys(given).length > 0 && { context: { arguments: given } }),
  };
  try {
    return (await sidecar.command("mcp.complete", params)).values;
  } catch {
    return [];
  }
}
