// A model without intelligence: it does what the prompt says. `prompt` encodes a list of [TOOL, ARGUMENTS], or `plans` has
// such a list for the text of a prompt; the model asks for these calls one after another, looking TOOL up by its ending among the tools that the agent offered, and at last
// answers with `DONE` and the results. It speaks the APIs of Anthropic, OpenAI (Responses and Chat) and Gemini.
import http from "node:http";

/** Some agents offer the tools of MCP servers only after the model has searched for them with this tool. */
export const SEARCH = "tool_search";

/** Starts the model on loopback. */
export async function startModel() {
  const model = new Model();
  await new Promise(resolve => model.server.listen(0, "127.0.0.1", resolve));
  model.url = `http://127.0.0.1:${model.server.address().port}`;
  return model;
}

class Model {
  /** The names of all tools that the agent has offered, as it wrote them. */
  tools = new Set();
  /** What the agent has told about the calls of the prompt, as of its last request. */
  results = [];
  /** The calls for a prompt in plain words, as [its text, the calls, the last words of the model]. */
  plans = [];
  /** Called before the model asks for a step, with its number. May return a promise. */
  beforeStep = () => {};

  constructor() {
    this.server = http.createServer((request, response) => {
      const chunks = [];
      request.on("data", chunk => chunks.push(chunk));
      request.on("end", () => this.#serve(request, response, Buffer.concat(chunks).toString()));
    });
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #serve(request, response, text) {
    const { pathname, searchParams } = new URL(request.url, this.url);
    try {
      const body = text ? JSON.parse(text) : {};
      const api = APIS.find(api => api.path.test(pathname));
      if (request.method !== "POST" || !api) {
        return send(
          response,
          pathname.endsWith("/models") ? { object: "list", data: [{ id: "fake-model", object: "model" }] } : {},
        );
      }
      if (/count_?tokens/i.test(pathname)) {
        return send(response, { input_tokens: 10, totalTokens: 10 });
      }
      const tools = api.tools(body);
      for (const tool of tools) {
        this.tools.add(tool);
      }
      const turn = await this.#next(api.texts(body), api.results(body), tools);
      const streamed = body.stream || /stream/i.test(pathname) || searchParams.get("alt") === "sse";
      api.answer(response, turn, streamed, body);
    } catch (error) {
      response.writeHead(500).end(String(error.stack));
    }
  }

  /** `{ call: { name, input, id } }` or `{ text }`. */
  async #next(texts, results, tools) {
    const [, planned, last] = this.plans.find(([text]) => texts.join(" ").includes(text)) ?? [];
    const steps = planned ?? stepsOf(texts);
    if (!steps || tools.length === 0) {
      return { text: "ok" };
    }
    const done = results.filter(result => !result.id.startsWith("search"));
    this.results = done.map(result => result.text);
    if (done.length >= steps.length) {
      return { text: last ?? `DONE ${done.map(result => result.text).join(" | ")}` };
    }
    const [ending, input] = steps[done.length];
    const name = tools.find(tool => tool.endsWith(ending));
    if (name) {
      await this.beforeStep(done.length);
      return { call: { name, input, id: `call_${done.length}_${Date.now()}` } };
    }
    if (tools.includes(SEARCH) && done.length === results.length) {
      return { call: { name: SEARCH, input: { query: ending }, id: `search_${Date.now()}` } };
    }
    return { text: `NO TOOL ${ending} AMONG ${tools.length}` };
  }
}

/** The prompt that asks for these calls. Encoded, because some agents quote what they pass on. */
export const prompt = steps => `Please run this: DO-${Buffer.from(JSON.stringify(steps)).toString("base64url")}-DO`;

/** The steps of the last prompt. */
function stepsOf(texts) {
  const found = texts
    .join(" ")
    .match(/DO-([\w-]+?)-DO/g)
    ?.at(-1);
  return found && JSON.parse(Buffer.from(found.slice(3, -3), "base64url").toString());
}

/** All texts inside a value of a message. */
function textOf(value) {
  if (typeof value === "string") {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map(textOf).join("");
  }
  return value && typeof value === "object"
    ? textOf(value.text ?? value.content ?? value.output ?? value.error ?? "")
    : "";
}

function send(response, value) {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** Server-sent events; `named` events carry their type as the event's name as well. */
function stream(response, events, { named = false, end = undefined } = {}) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) {
    response.write(`${named ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(end);
}

const anthropic = {
  path: /\/v1\/messages/,
  tools: body => (body.tools ?? []).map(tool => tool.name),
  texts: body => body.messages.filter(message => message.role === "user").map(message => textOf(message.content)),
  results: body =>
    body.messages
      .flatMap(message => (Array.isArray(message.content) ? message.content : []))
      .filter(part => part.type === "tool_result")
      .map(part => ({ id: part.tool_use_id, text: textOf(part.content) })),
  answer(response, { call, text }, streamed, body) {
    const block = call ? { type: "tool_use", id: call.id, name: call.name, input: call.input } : { type: "text", text };
    const stop = call ? "tool_use" : "end_turn";
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: body.model,
      content: [block],
      stop_reason: stop,
      stop_sequence: null,
      usage,
    };
    if (!streamed) {
      return send(response, message);
    }
    const empty = call ? { ...block, input: {} } : { ...block, text: "" };
    const delta = call
      ? { type: "input_json_delta", partial_json: JSON.stringify(call.input) }
      : { type: "text_delta", text };
    stream(
      response,
      [
        { type: "message_start", message: { ...message, content: [], stop_reason: null } },
        { type: "content_block_start", index: 0, content_block: empty },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage },
        { type: "message_stop" },
      ],
      { named: true },
    );
  },
};

const responses = {
  path: /\/responses$/,
  // Codex groups the tools of a server in a namespace.
  tools: body =>
    (body.tools ?? []).flatMap(tool =>
      tool.type === "namespace" ? tool.tools.map(inner => `${tool.name}\0${inner.name}`) : tool.name ? [tool.name] : [],
    ),
  texts: body =>
    typeof body.input === "string"
      ? [body.input]
      : body.input.filter(item => item.role === "user").map(item => textOf(item.content)),
  results: body =>
    (Array.isArray(body.input) ? body.input : [])
      .filter(item => item.type === "function_call_output" || item.type === "mcp_tool_call_output")
      .map(item => ({ id: item.call_id, text: textOf(item.output) })),
  answer(response, { call, text }, streamed, body) {
    const [space, name] = call?.name.includes("\0") ? call.name.split("\0") : [undefined, call?.name];
    const item = call
      ? {
          type: "function_call",
          id: "fc_1",
          call_id: call.id,
          name,
          ...(space && { namespace: space }),
          arguments: JSON.stringify(call.input),
          status: "completed",
        }
      : {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text, annotations: [] }],
        };
    const usage = {
      input_tokens: 1,
      output_tokens: 1,
      total_tokens: 2,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    };
    const whole = {
      id: "resp_1",
      object: "response",
      created_at: 1,
      status: "completed",
      model: body.model,
      output: [item],
      usage,
      error: null,
    };
    if (!streamed) {
      return send(response, whole);
    }
    const delta = call
      ? [{ type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 0, arguments: item.arguments }]
      : [{ type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: text }];
    const events = [
      { type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } },
      {
        type: "response.output_item.added",
        output_index: 0,
        item: call ? { ...item, arguments: "" } : { ...item, content: [] },
      },
      ...delta,
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: whole },
    ];
    stream(
      response,
      events.map((event, sequence_number) => ({ ...event, sequence_number })),
      { named: true },
    );
  },
};

const chat = {
  path: /\/chat\/completions$/,
  tools: body => (body.tools ?? []).map(tool => tool.function.name),
  texts: body => body.messages.filter(message => message.role === "user").map(message => textOf(message.content)),
  results: body =>
    body.messages
      .filter(message => message.role === "tool")
      .map(message => ({ id: message.tool_call_id, text: textOf(message.content) })),
  answer(response, { call, text }, streamed, body) {
    const calls = call && [
      { index: 0, id: call.id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.input) } },
    ];
    const message = { role: "assistant", content: call ? null : text, ...(calls && { tool_calls: calls }) };
    const finish_reason = call ? "tool_calls" : "stop";
    const base = { id: "chat_1", created: 1, model: body.model };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    if (!streamed) {
      return send(response, {
        ...base,
        object: "chat.completion",
        choices: [{ index: 0, message, finish_reason }],
        usage,
      });
    }
    const chunk = (delta, finish = null) => ({
      ...base,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const last = { ...chunk({}, finish_reason), usage };
    stream(response, [chunk(message), last], { end: "data: [DONE]\n\n" });
  },
};

const gemini = {
  path: /:(generateContent|streamGenerateContent|countTokens)$/,
  tools: body => (body.tools ?? []).flatMap(tool => tool.functionDeclarations ?? []).map(tool => tool.name),
  texts: body => body.contents.filter(content => content.role === "user").map(content => textOf(content.parts)),
  results: body =>
    body.contents
      .flatMap(content => content.parts)
      .filter(part => part.functionResponse)
      .map(part => ({ id: part.functionResponse.id ?? "", text: textOf(part.functionResponse.response) })),
  answer(response, { call, text }, streamed) {
    const part = call ? { functionCall: { name: call.name, args: call.input, id: call.id } } : { text };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const whole = {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata,
    };
    return streamed ? stream(response, [whole]) : send(response, whole);
  },
};

const APIS = [anthropic, responses, chat, gemini];
