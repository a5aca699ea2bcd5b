// An agent made with the TypeScript SDK, of the version that its first argument names. Obeys lines of JSON on stdin:
// list, list-all, call, cancel. Tells what comes of it in lines on stdout.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [version, program] = process.argv.slice(2);
const require = createRequire(`${process.env.MCP_CLIENTS}/package.json`);
const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const info = { name: `typescript-${version}`, version: "1" };
const options = { capabilities: { elicitation: { form: {} } } };

const answer = async ({ params }) => {
  tell({ asked: params.message });
  return { action: "accept", content: { decision: "allow-once" } };
};

let client;
let Transport;
let call;
if (version === "v1") {
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");
  Transport = require("@modelcontextprotocol/sdk/client/stdio.js").StdioClientTransport;
  client = new Client(info, options);
  client.setRequestHandler(ElicitRequestSchema, answer);
  call = (params, rest) => client.callTool(params, undefined, rest);
} else {
  const { Client } = require("@modelcontextprotocol/client");
  Transport = require("@modelcontextprotocol/client/stdio").StdioClientTransport;
  client = new Client(info, { ...options, versionNegotiation: { mode: "auto" } });
  client.setRequestHandler("elicitation/create", answer);
  call = (params, rest) => client.callTool(params, rest);
}

await client.connect(new Transport({ command: program, args: ["connect"], env: process.env }));

let running;
const obey = async ({ do: wish, tool, arguments: given }) => {
  if (wish === "list") {
    const { tools } = await client.listTools();
    tell({ tools: tools.map(({ name }) => name) });
  } else if (wish === "list-all") {
    const names = (entries) => entries.map(({ name }) => name);
    const { tools } = await client.listTools();
    const { prompts } = await client.listPrompts();
    const { resources } = await client.listResources();
    const { resourceTemplates } = await client.listResourceTemplates();
    const lists = { tools, prompts, resources, resourceTemplates };
    tell({ lists: Object.fromEntries(Object.entries(lists).map(([key, entries]) => [key, names(entries)])) });
  } else if (wish === "cancel") {
    running.abort("changed its mind");
  } else {
    running = new AbortController();
    const rest = { signal: running.signal, onprogress: ({ message = null }) => tell({ progress: message }) };
    call({ name: tool, arguments: given }, rest).then(
      (result) => tell({ result }),
      (error) => tell({ error: String(error) }),
    );
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  await obey(JSON.parse(line));
}
await client.close();
