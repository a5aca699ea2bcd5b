/** Commands for tools, resources and prompts: show them, run a tool by its form, open a resource, insert a prompt. */

import { type CancellationToken, env, type Progress, window } from "vscode";
import { traits } from "../approvals/labels";
import { type Values, withText } from "../form/entered";
import { showForm } from "../form/inputs";
import { getPrompt } from "../prompts";
import type { Field, PromptInfo, ResourceInfo, ToolInfo, ToolResult } from "../protocol";
import { expand, openResource } from "../resources";
import { insert } from "../results/panel";
import { quoted } from "../text";
import { type App, busy, pick, register, type ToolArgument, toolOf } from "./app";

/** The last call, for `Run Tool Again…`. */
let last: { tool: string; arguments: Values } | undefined;

export function toolCommands(app: App): void {
  register(app, "mcpSidecar.tool.show", async (given: ToolArgument) => {
    const tool = await toolOf(app, given, "Show which tool?");
    if (tool) {
      app.results.tool(tool, await fieldsOf(app, tool));
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
    return tool && callByForm(app, tool, await fieldsOf(app, tool), values);
  });

  register(app, "mcpSidecar.tool.callWithSelection", async () => {
    const editor = window.activeTextEditor;
    const text = editor?.document.getText(editor.selection.isEmpty ? undefined : editor.selection) ?? "";
    const tool = await toolOf(app, undefined, "Run which tool with the selection?");
    const fields = tool ? await fieldsOf(app, tool) : [];
    return tool && callByForm(app, tool, fields, withText(fields, text));
  });

  register(app, "mcpSidecar.tool.again", async () => {
    if (!last) {
      window.showInformationMessage("No tool has run yet.");
      return undefined;
    }
    const tool = await toolOf(app, last.tool, "");
    return tool && callByForm(app, tool, await fieldsOf(app, tool), last.arguments);
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
      await openResource(app, resource.server, uri);
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

/** The arguments of a tool. */
async function fieldsOf(app: App, tool: ToolInfo): Promise<Field[]> {
  return (await app.sidecar.command("mcp.tool.form", { tool: tool.name })).fields;
}

/** A line to read before anything that can change something runs. */
function caution(app: App, tool: ToolInfo, fields: readonly Field[]) {
  const explain = () => app.results.tool(tool, fields);
  const [effect] = traits(tool.annotations)[0] ?? [""];
  const detail = tool.description.split("\n", 1)[0] ?? "";
  return tool.annotations.readOnly ? {} : { caution: { label: `This tool ${effect} data`, detail, explain } };
}

/**
 * Asks for the arguments, then runs the tool. The form always ends with a step that names the tool, also for a tool without
 * arguments: nothing runs by choosing it from a list.
 */
async function callByForm(app: App, tool: ToolInfo, fields: readonly Field[], given: Values = {}) {
  const values = await showForm({
    title: `${quoted(tool.tool)} of ${quoted(tool.server)}`,
    fields,
    given,
    check: entered => app.sidecar.command("mcp.form.check", { tool: tool.name, values: entered }),
    verb: `Run ${quoted(tool.tool)}`,
    schema: tool.inputSchema,
    draft: Object.keys(given).length > 0 ? "" : `tool:${tool.name}`,
    ...caution(app, tool, fields),
  });
  if (!values) {
    return undefined;
  }
  const result = await call(app, tool, values);
  await app.results.result(result, tool.name, values);
  return result;
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
    value: resource,
  }));
  return pick(items, "Open which resource?", "No connected server offers resources.");
}

async function pickPrompt(app: App, question: string): Promise<PromptInfo | undefined> {
  const { prompts } = await app.sidecar.command("mcp.prompts", {});
  const items = prompts.map(prompt => ({
    label: `$(comment) ${prompt.title ?? prompt.name}`,
    description: prompt.server,
    detail: prompt.description ?? "",
    value: prompt,
  }));
  return pick(items, question, "No connected server offers prompts.");
}
