/**
 * An MCP server inside the editor: just enough MCP for tools written in TypeScript. It handles whole messages; how they
 * are sent is up to the caller.
 */

export interface Tool {
  description: string;
  /** The JSON Schema of the arguments, without its `type`, which is always `object`. */
  input?: { properties: Record<string, object>; required?: string[] };
  run(given: Record<string, unknown>): unknown;
}

export interface Message {
  jsonrpc?: "2.0";
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string };
}

export interface Served {
  name: string;
  version: string;
  instructions: string;
  tools: Record<string, Tool>;
}

/** The answer to a request; nothing to a notification. */
export async function answer(served: Served, message: Message): Promise<Message | undefined> {
  const { id, method, params } = message;
  if (id === undefined || id === null || method === undefined) return undefined;
  const reply = (outcome: Pick<Message, "result" | "error">): Message => ({ jsonrpc: "2.0", id, ...outcome });
  switch (method) {
    case "initialize":
      return reply({ result: greeting(served, params) });
    case "ping":
      return reply({ result: {} });
    case "tools/list":
      return reply({ result: { tools: list(served) } });
    case "tools/call": {
      const tool = Object.hasOwn(served.tools, String(params?.name)) ? served.tools[String(params?.name)] : undefined;
      if (!tool) return reply({ error: { code: -32602, message: `no tool named \`${String(params?.name)}\`` } });
      return reply({ result: await call(tool, (params?.arguments ?? {}) as Record<string, unknown>) });
    }
    default:
      return reply({ error: { code: -32601, message: `no method \`${method}\`` } });
  }
}

function greeting(served: Served, params: Record<string, unknown> | undefined) {
  return {
    // All versions that start with `initialize` are the same here, so any requested one is fine.
    protocolVersion: params?.protocolVersion ?? "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: served.name, version: served.version },
    instructions: served.instructions,
  };
}

function list(served: Served) {
  return Object.entries(served.tools).map(([name, tool]) => ({
    name,
    description: tool.description,
    inputSchema: { type: "object", properties: {}, ...tool.input },
    annotations: { readOnlyHint: true, openWorldHint: false },
  }));
}

/** A failed tool returns its error as a result, so that the agent can read it and try something else. */
async function call(tool: Tool, given: Record<string, unknown>) {
  try {
    const value = await tool.run(given);
    return typeof value === "string"
      ? { content: [{ type: "text", text: value }] }
      : { content: [{ type: "text", text: JSON.stringify(value, undefined, 2) }], structuredContent: value };
  } catch (error) {
    return { content: [{ type: "text", text: error instanceof Error ? error.message : String(error) }], isError: true };
  }
}
