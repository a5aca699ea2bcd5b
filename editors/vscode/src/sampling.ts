/**
 * Sampling: an MCP server may use a model of the user, through `vscode.lm`. Offered only if the setting
 * `mcpSidecar.sampling` is on. The user has allowed each request before it arrives here, and VS Code asks once more before
 * this extension uses a model for the first time.
 */
import {
  type CancellationToken,
  type LanguageModelChat,
  LanguageModelChatMessage,
  type LanguageModelChatRequestOptions,
  lm,
} from "vscode";
import { ResponseError } from "vscode-languageclient/node";
import type { Content } from "./protocol";
import { setting } from "./settings";
import type { Sidecar } from "./sidecar";

/** The part of MCP's `CreateMessageRequestParams` that models of VS Code support. */
export interface SamplingParams {
  messages: { role: "user" | "assistant"; content: Content | Content[] }[];
  systemPrompt?: string;
  maxTokens?: number;
  temperature?: number;
  stopSequences?: string[];
  modelPreferences?: { hints?: { name?: string }[] };
}

/** Must be called before the sidecar starts, because the capability is part of `initialize`. */
export function registerSampling(sidecar: Sidecar): void {
  sidecar.add({
    abilities: () => ({ sampling: allowed() }),
    attach: client => {
      client.onRequest("mcp/sample", ({ params }, token) => sample(params as SamplingParams, token));
    },
  });
}

function allowed(): boolean {
  return setting("sampling") === true;
}

async function sample(params: SamplingParams, token: CancellationToken) {
  if (!allowed()) throw refused("sampling is off; turn on the setting `mcpSidecar.sampling` to allow it");
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

/** A hint is part of a name, and the first match wins. Without a match MCP allows any model. */
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
  // Models of VS Code have no system role: the system prompt becomes the first user message.
  const system = params.systemPrompt ? [LanguageModelChatMessage.User(params.systemPrompt)] : [];
  const rest = params.messages.map(({ role, content }) => {
    const text = [content].flat().map(textOf).join("\n");
    return role === "assistant" ? LanguageModelChatMessage.Assistant(text) : LanguageModelChatMessage.User(text);
  });
  return [...system, ...rest];
}

function textOf(block: Content): string {
  if (block.type === "text") return block.text ?? "";
  throw refused(`VS Code models accept only text, but the request contains a block of type \`${block.type}\``);
}

function options(params: SamplingParams): LanguageModelChatRequestOptions {
  const requested = { max_tokens: params.maxTokens, temperature: params.temperature, stop: params.stopSequences };
  const given = Object.entries(requested).filter(([, value]) => value !== undefined);
  return { justification: "An MCP server requested it.", modelOptions: Object.fromEntries(given) };
}

function refused(message: string): ResponseError<void> {
  return new ResponseError(-32001, message);
}
