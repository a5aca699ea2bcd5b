// An MCP server with two tools, of which one may write. Their arguments are an object, a list of objects, choices, bounds
// and a long text; their result is what they were given.
import readline from "node:readline";

const city = { type: "string" };
const country = {
  oneOf: [
    { const: "PT", title: "Portugal" },
    { const: "NO", title: "Norway" },
  ],
};
const person = {
  type: "object",
  required: ["name"],
  properties: { name: { type: "string" }, age: { type: "integer", minimum: 0, maximum: 120 } },
};
const inputSchema = {
  type: "object",
  required: ["where", "people"],
  properties: {
    where: { type: "object", title: "Where", required: ["city"], properties: { city, country } },
    people: { type: "array", title: "People", minItems: 1, items: person },
    days: { type: "integer", title: "Days", minimum: 1, maximum: 14 },
    description: { type: "string", title: "Description" },
  },
};
const tools = [
  { name: "plan_trip", inputSchema, annotations: { readOnlyHint: true } },
  { name: "book_trip", inputSchema },
];

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "forms", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": params => ({ content: [{ type: "text", text: JSON.stringify(params.arguments) }] }),
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const answer = answers[method];
  if (id !== undefined) {
    const outcome = answer ? { result: answer(params) } : { error: { code: -32601, message: "unknown method" } };
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...outcome })}\n`);
  }
}
