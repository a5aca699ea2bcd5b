/**
 * Sampling: an MCP server may ask the user's model, through `vscode.lm`. Offered only when the setting
 * `mcpSidecar.sampling` is on; each request has been allowed by the user in the sidecar before it comes here, and VS Code
 * asks once more before this extension uses a model for the first time.
 */
import {
  type CancellationToken,
  type LanguageModelChat,
  LanguageModelChatMessage,
  type LanguageModelChatRequestOptions,
  lm,
  workspace,
} from "vscode";
import { ResponseError } from "vscode-languageclient/node";
import type { Sidecar } from "./sidecar";

interface Block {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
}

/** MCP's `CreateMessageRequestParams`, as far as a model of VS Code can follow it. */
export interface SamplingParams {
  messages: { role: "user" | "assistant"; content: Block | Block[] }[];
  systemPrompt?: string;
  maxTokens?: number;
  temperature?: number;
  stopSequences?: string[];
  modelPreferences?: { hints?: { name?: string }[] };
}

/** Has to be called before the sidecar starts: the ability is part of the greeting. */
export function registerSampling(sidecar: Sidecar): void {
  sidecar.add({
    abilities: () => ({ sampling: allowed() }),
    attach: client => {
      client.onRequest("mcp/sample", ({ params }: { params: SamplingParams }, token: CancellationToken) =>
        sample(params, token),
      );
    },
  });
}

function allowed(): boolean {
  return workspace.getConfiguration("mcpSidecar").get<boolean>("sampling") === true;
}

async function sample(params: SamplingParams, token: CancellationToken) {
  if (!allowed()) throw refused("sampling is switched off; the setting `mcpSidecar.sampling` allows it");
  const model = choose(await lm.selectChatModels(), params);
  if (!model) throw refused("VS Code has no language model; sign in to one and try again");
  try {
    const answer = await model.sendRequest(messages(params), options(params), token);
    let text = "";
    for await (const piece of answer.text) text += piece;
    return { role: "assistant", content: { type: "text", text }, model: model.id, stopReason: "endTurn" };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw refused(`\`${model.name}\` did not answer: ${reason}`);
  }
}

/** A hint is part of a name, the first that fits counts; without a fit any model will do, says MCP. */
export function choose<Model extends Pick<LanguageModelChat, "id" | "family" | "name">>(
  models: readonly Model[],
  params: SamplingParams,
): Model | undefined {
  for (const { name } of params.modelPreferences?.hints ?? []) {
    const hint = name?.toLowerCase();
    const fit =
      hint && models.find(model => `${model.id}\n${model.family}\n${model.name}`.toLowerCase().includes(hint));
    if (fit) return fit;
  }
  return models[0];
}

function messages(params: SamplingParams): LanguageModelChatMessage[] {
  // VS Code's models know no system role: the prompt comes first, in the user's name.
  const system = params.systemPrompt ? [LanguageModelChatMessage.User(params.systemPrompt)] : [];
  const rest = params.messages.map(({ role, content }) => {
    const text = [content].flat().map(textOf).join("\n");
    return role === "assistant" ? LanguageModelChatMessage.Assistant(text) : LanguageModelChatMessage.User(text);
  });
  return [...system, ...rest];
}

function textOf(block: Block): string {
  if (block.type === "text") return block.text ?? "";
  throw refused(`the models of VS Code take text only, and the request holds a block of type \`${block.type}\``);
}

function options(params: SamplingParams): LanguageModelChatRequestOptions {
  const wished = { max_tokens: params.maxTokens, temperature: params.temperature, stop: params.stopSequences };
  const given = Object.entries(wished).filter(([, value]) => value !== undefined);
  return { justification: "An MCP server asks for it.", modelOptions: Object.fromEntries(given) };
}

function refused(message: string): ResponseError<void> {
  return new ResponseError(-32001, message);
}
