// A client made with the TypeScript SDK, of the version that its first argument names, for the client scenarios of the
// official suite. The last argument is the URL of the suite's server. Its user signs in and accepts every form.
import { createRequire } from "node:module";

const version = process.argv[2];
const url = new URL(process.argv.at(-1));
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const require = createRequire(`${process.env.MCP_CLIENTS}/package.json`);

const sdk =
  version === "v1"
    ? {
        ...require("@modelcontextprotocol/sdk/client/index.js"),
        ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        ...require("@modelcontextprotocol/sdk/client/auth.js"),
        ...require("@modelcontextprotocol/sdk/client/auth-extensions.js"),
        ...require("@modelcontextprotocol/sdk/types.js"),
      }
    : require("@modelcontextprotocol/client");

/** Keeps everything in memory, and follows the sign-in page back. */
class Browser {
  redirectUrl = "http://localhost:9/callback";
  clientMetadataUrl = "https://conformance-test.local/client-metadata.json";
  clientMetadata = {
    client_name: "compared",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
  };
  // By issuer, because a registration is valid at one issuer only. The first version does not name it.
  #clients = new Map();
  #tokens;
  #verifier;

  clientInformation = (about) =>
    context.client_id
      ? { client_id: context.client_id, client_secret: context.client_secret }
      : this.#clients.get(about?.issuer);
  saveClientInformation = (client, about) => void this.#clients.set(about?.issuer, client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);

  async redirectToAuthorization(page) {
    const answer = await fetch(page, { redirect: "manual" });
    this.returned = new URL(answer.headers.get("location")).searchParams;
  }
}

const machine = {
  "auth/client-credentials-basic": () =>
    new sdk.ClientCredentialsProvider({ clientId: context.client_id, clientSecret: context.client_secret }),
  "auth/client-credentials-jwt": () =>
    new sdk.PrivateKeyJwtProvider({
      clientId: context.client_id,
      privateKey: context.private_key_pem,
      algorithm: context.signing_algorithm ?? "ES256",
    }),
}[scenario];
const authProvider = machine ? machine() : new Browser();

const options = { capabilities: { elicitation: { form: { applyDefaults: true } } } };
const client = new sdk.Client(
  { name: `typescript-${version}`, version: "1" },
  version === "v1" ? options : { ...options, versionNegotiation: { mode: "auto" } },
);
client.setRequestHandler(version === "v1" ? sdk.ElicitRequestSchema : "elicitation/create", () => ({
  action: "accept",
  content: {},
}));

/** Does something, and signs in when the server requires it. */
let transport = new sdk.StreamableHTTPClientTransport(url, { authProvider });
async function signedIn(act) {
  for (let tries = 0; ; tries++) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof sdk.UnauthorizedError) || !authProvider.returned || tries === 2) throw error;
      const { returned } = authProvider;
      authProvider.returned = undefined;
      // The second version checks the issuer itself.
      await transport.finishAuth(version === "v1" ? returned.get("code") : returned);
    }
  }
}

await signedIn(async () => {
  if (client.transport) await client.close();
  transport = new sdk.StreamableHTTPClientTransport(url, { authProvider });
  await client.connect(transport);
});

/** The smallest arguments that a schema accepts. */
const sample = (schema) => {
  if (schema?.default !== undefined) return schema.default;
  if (schema?.enum) return schema.enum[0];
  const required = Object.entries(schema?.properties ?? {}).filter(([name]) => schema.required?.includes(name));
  const values = { number: 1, integer: 1, boolean: true, string: "x", array: [], null: null };
  return values[schema?.type] ?? Object.fromEntries(required.map(([name, value]) => [name, sample(value)]));
};

// The servers of these scenarios support no calls.
const { tools } = scenario === "initialize" ? { tools: [] } : await signedIn(() => client.listTools());
if (scenario !== "json-schema-ref-no-deref") {
  const call = (params) => signedIn(() => client.callTool(params));
  for (const { name, arguments: given } of context.toolCalls ?? []) await call({ name, arguments: given });
  const echo = tools.find(({ name }) => name === "json_schema_echo");
  const others = tools.filter((tool) => tool !== echo);
  if (echo) {
    await call({ name: echo.name, arguments: { schema: others[0].inputSchema } });
  } else {
    const named = new Set((context.toolCalls ?? []).map(({ name }) => name));
    for (const { name, inputSchema } of others.filter((tool) => !named.has(tool.name))) {
      await call({ name, arguments: sample(inputSchema) });
    }
  }
}
await client.close();
