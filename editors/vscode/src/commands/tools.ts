/** Commands for tools, resources and prompts: show them, run a tool by its form, open a resource, insert a prompt. */

import { type CancellationToken, env, type Progress, window } from "vscode";
import { traits } from "../approvals/labels";
import { failureOf } from "../errors";
import { showForm } from "../form/inputs";
import { fields, type Values, withText } from "../form/schema";
import { getPrompt } from "../prompts";
import type { PromptInfo, ResourceInfo, ToolInfo, ToolResult } from "../protocol";
import { expand, openResource } from "../resources";
import { insert } from "../results/panel";
import { quoted } from "../text";
import { type App, busy, register, type ToolArgument, toolOf } from "./app";

/** The last call, for `Run Tool Again…`. */
let last: { tool: string; arguments: Values } | undefined;

export function toolCommands(app: App): void {
  register(app, "mcpSidecar.tool.show", async (given: ToolArgument) => {
    const tool = await toolOf(app, given, "Show which tool?");
    if (tool) {
      app.results.tool(tool);
    }
  });

  register(app, "mcpSidecar.prompt.show", async (given?: PromptArgument) => {
    const prompt = given?.prompt ?? (await pickPrompt(app, "Show which prompt?"));
    if (prompt) {
      app.results.prompt(prompt);
    }
  });

  register(app, "mcpSidecar.tool.call", async (given: ToolArgument) => {
    const tool = await toolOf(app, given, "Run which tool?");
    const values = typeof given === "object" ? given.arguments : undefined;
    return tool && callByForm(app, tool, values);
  });

  register(app, "mcpSidecar.tool.callWithSelection", async () => {
    const editor = window.activeTextEditor;
    const text = editor?.document.getText(editor.selection.isEmpty ? undefined : editor.selection) ?? "";
    const tool = await toolOf(app, undefined, "Run which tool with the selection?");
    return tool && callByForm(app, tool, withText(fields(tool.inputSchema), text));
  });

  register(app, "mcpSidecar.tool.again", async () => {
    if (!last) {
      window.showInformationMessage("No tool has run yet.");
      return undefined;
    }
    const tool = await toolOf(app, last.tool, "");
    return tool && callByForm(app, tool, last.arguments);
  });

  register(app, "mcpSidecar.tool.copyName", async (given: ToolArgument) => {
    const tool = await toolOf(app, given, "Copy the name of which tool?");
    if (tool) {
      await env.clipboard.writeText(tool.name);
    }
  });

  register(app, "mcpSidecar.resource.open", async (given?: ResourceArgument) => {
    const resource = await resourceOf(app, given);
    const uri = resource && (await expand(resource));
    if (uri) {
      const show = app.results.resource.bind(app.results);
      await openResource(app.sidecar, resource.server, uri, show);
    }
  });

  register(app, "mcpSidecar.prompt.insert", async (given?: PromptArgument) => {
    const prompt = given?.prompt ?? (await pickPrompt(app, "Insert which prompt?"));
    const text = prompt && (await getPrompt(app.sidecar, prompt));
    if (text !== undefined) {
      await insert(text);
    }
  });
}

type PromptArgument = { prompt?: PromptInfo };

/** A line to read before anything that can change something runs. */
function caution(app: App, tool: ToolInfo) {
  const explain = () => app.results.tool(tool);
  const [effect] = traits(tool.annotations)[0] ?? [""];
  const detail = tool.description.split("\n", 1)[0] ?? "";
  return tool.annotations.readOnly ? {} : { caution: { label: `This tool ${effect} data`, detail, explain } };
}

/**
 * Asks for the arguments, then runs the tool. If the sidecar rejects the arguments, the form comes back. The form always
 * ends with a step that names the tool, also for a tool without arguments: nothing runs by choosing it from a list.
 */
async function callByForm(app: App, tool: ToolInfo, given: Values = {}): Promise<ToolResult | undefined> {
  const title = `${quoted(tool.tool)} of ${quoted(tool.server)}`;
  let values: Values | undefined = given;
  for (let problem: string | undefined; ; ) {
    const verb = `Run ${quoted(tool.tool)}`;
    const request = { title, schema: tool.inputSchema, given: values, verb, ...caution(app, tool) };
    values = await showForm(problem ? { ...request, problem } : request);
    if (!values) {
      return undefined;
    }
    try {
      const result = await call(app, tool, values);
      await app.results.result(result, tool.name, values);
      return result;
    } catch (error) {
      const { data, message } = failureOf(error);
      if (data.kind !== "invalid-arguments" || fields(tool.inputSchema).length === 0) {
        throw error;
      }
      problem = data.detail?.map(({ path, message: why }) => `${path || "/"}: ${why}`).join("; ") || message;
    }
  }
}

function call(app: App, tool: ToolInfo, values: Values): Thenable<ToolResult> {
  last = { tool: tool.name, arguments: values };
  // The user has just seen these arguments in the form and sent them: that is the answer to `require-approval`.
  const params = { tool: tool.name, arguments: values, decision: "allow-once" as const };
  return busy(
    `Running ${quoted(tool.tool)} of ${quoted(tool.server)}`,
    (progress: Progress<{ message?: string; increment?: number }>, token: CancellationToken) => {
      let reached = 0;
      return app.sidecar.command("mcp.tool.call", params, token, ({ message, percentage }) => {
        const increment = percentage === undefined ? 0 : percentage - reached;
        reached += increment;
        progress.report({ ...(message && { message }), increment });
      });
    },
  );
}

type ResourceArgument = { resource?: ResourceInfo; server?: string; uri?: string };

async function resourceOf(app: App, given: ResourceArgument | undefined): Promise<ResourceInfo | undefined> {
  if (given?.resource) {
    return given.resource;
  }
  if (given?.server && given.uri) {
    return { server: given.server, uri: given.uri, name: given.uri };
  }
  const { resources, templates } = await app.sidecar.command("mcp.resources", {});
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

async function pickPrompt(app: App, question: string): Promise<PromptInfo | undefined> {
  const { prompts } = await app.sidecar.command("mcp.prompts", {});
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
  return (await window.showQuickPick(items, { placeHolder: question, matchOnDescription: true }))?.prompt;
}
