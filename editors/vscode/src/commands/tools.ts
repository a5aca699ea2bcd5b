/** Commands about tools: call one by its form, set its level, ask why it has the one it has. And resources and prompts. */

import { type CancellationToken, env, type Progress, window } from "vscode";
import { fill } from "../form/ask";
import { fields, type Values, withText } from "../form/schema";
import { getPrompt } from "../prompts";
import type { PromptInfo, ResourceInfo, ToolInfo, ToolResult } from "../protocol";
import { expand, openResource } from "../resources";
import { insert } from "../results/panel";
import { failure } from "../say";
import { busy, type Kit, register, type ToolArgument, toolOf } from "./kit";

/** The call that was made last, for doing it again. */
let last: { tool: string; arguments: Values } | undefined;

export function toolCommands(kit: Kit): void {
  register(kit, "mcpSidecar.tool.call", async (given: ToolArgument) => {
    const tool = await toolOf(kit, given, "Call which tool?");
    const values = typeof given === "object" ? given.arguments : undefined;
    return tool && callByForm(kit, tool, values);
  });

  register(kit, "mcpSidecar.tool.callWithSelection", async () => {
    const editor = window.activeTextEditor;
    const text = editor?.document.getText(editor.selection.isEmpty ? undefined : editor.selection) ?? "";
    const tool = await toolOf(kit, undefined, "Which tool gets the selection?");
    return tool && callByForm(kit, tool, withText(fields(tool.inputSchema), text));
  });

  register(kit, "mcpSidecar.tool.again", async () => {
    if (!last) {
      window.showInformationMessage("No tool has been called yet.");
      return undefined;
    }
    const tool = await toolOf(kit, last.tool, "");
    return tool && callByForm(kit, tool, last.arguments);
  });

  register(kit, "mcpSidecar.tool.copyName", async (given: ToolArgument) => {
    const tool = await toolOf(kit, given, "Copy the name of which tool?");
    if (tool) {
      await env.clipboard.writeText(tool.name);
    }
  });

  register(kit, "mcpSidecar.resource.open", async (given?: ResourceArgument) => {
    const resource = await resourceOf(kit, given);
    const uri = resource && (await expand(resource));
    if (uri) {
      const show = kit.results.resource.bind(kit.results);
      await openResource(kit.sidecar, resource.server, uri, show);
    }
  });

  register(kit, "mcpSidecar.prompt.insert", async (given?: { prompt?: PromptInfo }) => {
    const prompt = given?.prompt ?? (await pickPrompt(kit));
    const text = prompt && (await getPrompt(kit.sidecar, prompt));
    if (text !== undefined) {
      await insert(text);
    }
  });
}

/** Asks for the arguments, then calls; what the sidecar says about them brings the form back. */
async function callByForm(kit: Kit, tool: ToolInfo, given: Values = {}): Promise<ToolResult | undefined> {
  const title = `${tool.server} › ${tool.tool}`;
  const asks = fields(tool.inputSchema).length > 0;
  let values: Values | undefined = given;
  for (let problem: string | undefined; ; ) {
    if (asks) {
      const wish = { title, schema: tool.inputSchema, given: values, verb: `Run ${tool.tool}` };
      values = await fill(problem ? { ...wish, problem } : wish);
    }
    if (!values) {
      return undefined;
    }
    try {
      const result = await call(kit, tool, values);
      await kit.results.result(result, tool.name, values);
      return result;
    } catch (error) {
      const { data, message } = failure(error);
      if (data.kind !== "invalid-arguments" || !asks) {
        throw error;
      }
      problem = data.detail?.map(({ path, message: why }) => `${path || "/"}: ${why}`).join("; ") || message;
    }
  }
}

function call(kit: Kit, tool: ToolInfo, values: Values): Thenable<ToolResult> {
  last = { tool: tool.name, arguments: values };
  // The form has just shown these very arguments to the user, who sent them: that is the answer to `require-approval`.
  const params = { tool: tool.name, arguments: values, decision: "allow-once" };
  return busy(
    `Running ${tool.tool} of ${tool.server}`,
    (progress: Progress<{ message?: string; increment?: number }>, token: CancellationToken) => {
      let reached = 0;
      return kit.sidecar.command<ToolResult>("mcp.tool.call", params, token, ({ message, percentage }) => {
        const increment = percentage === undefined ? 0 : percentage - reached;
        reached += increment;
        progress.report({ ...(message && { message }), increment });
      });
    },
  );
}

type ResourceArgument = { resource?: ResourceInfo; server?: string; uri?: string };

async function resourceOf(kit: Kit, given: ResourceArgument | undefined): Promise<ResourceInfo | undefined> {
  if (given?.resource) {
    return given.resource;
  }
  if (given?.server && given.uri) {
    return { server: given.server, uri: given.uri, name: given.uri };
  }
  type Listed = { resources: ResourceInfo[]; templates: ResourceInfo[] };
  const { resources, templates } = await kit.sidecar.command<Listed>("mcp.resources");
  const items = [...resources, ...templates].map(resource => ({
    label: `$(file) ${resource.title ?? resource.name}`,
    description: resource.server,
    detail: resource.uri ?? resource.uriTemplate ?? "",
    resource,
  }));
  if (items.length === 0) {
    window.showInformationMessage("No connected server offers resources.");
    return undefined;
  }
  const options = { placeHolder: "Open which resource?", matchOnDescription: true, matchOnDetail: true };
  return (await window.showQuickPick(items, options))?.resource;
}

async function pickPrompt(kit: Kit): Promise<PromptInfo | undefined> {
  const { prompts } = await kit.sidecar.command<{ prompts: PromptInfo[] }>("mcp.prompts");
  if (prompts.length === 0) {
    window.showInformationMessage("No connected server offers prompts.");
    return undefined;
  }
  const items = prompts.map(prompt => ({
    label: `$(comment) ${prompt.title ?? prompt.name}`,
    description: prompt.server,
    detail: prompt.description ?? "",
    prompt,
  }));
  return (await window.showQuickPick(items, { placeHolder: "Insert which prompt?", matchOnDescription: true }))?.prompt;
}
