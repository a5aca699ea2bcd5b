// The agents: how each is told about the model, how it lists its MCP servers, and how it runs one prompt. The entry for
// `mcp-sidecar connect` is written by `mcp-sidecar setup`.
import fs from "node:fs";
import path from "node:path";

const write = (place, name, value) => {
  const file = path.join(place, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, typeof value === "string" ? value : JSON.stringify(value, undefined, 2));
};

/**
 * Each agent, by its name for `mcp-sidecar setup`: `title`, its name for people; `package`, its npm package; `program`, its
 * name in node_modules/.bin; `reports`, the name that it reports to servers; `configure` writes its files, before `setup`
 * edits them; `env` and `args` run one prompt. `list` is its own command that lists MCP servers, and `listed` what that
 * prints about ours; an agent without one is tried with a prompt. `hooks` is about its own tools: its `name` in `agentTools`,
 * its calls to run a `shell` command and to `write` a file, its `args` if hooks need others,
 * and whether it `waits` for a user who is not there. `context` has `home`, `project` and `url` (of the model).
 */
export const AGENTS = {
  claude: {
    title: "Claude Code",
    package: "@anthropic-ai/claude-code",
    program: "claude",
    reports: /^claude-code$/,
    configure: ({ home }) => write(home, ".claude.json", { hasCompletedOnboarding: true }),
    list: ["mcp", "list"],
    listed: /mcp-sidecar: .*Connected/,
    env: ({ url }) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "dummy",
      DISABLE_TELEMETRY: "1",
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    }),
    args: prompt => ["-p", prompt, "--allowedTools", "mcp__mcp-sidecar"],
    hooks: {
      name: "claude-code",
      shell: command => ["Bash", { command, description: "a test" }],
      write: (file, content) => ["Write", { file_path: file, content }],
    },
  },
  codex: {
    title: "Codex",
    package: "@openai/codex",
    program: "codex",
    reports: /^codex-mcp-client$/,
    configure: ({ home }) => write(home, ".codex/config.toml", "# the user's own config\n"),
    list: ["mcp", "list"],
    listed: /mcp-sidecar .*enabled/,
    env: () => ({ FAKE_KEY: "dummy" }),
    args: (prompt, { url }) => [
      "exec",
      "--skip-git-repo-check",
      "-c",
      'model_provider="fake"',
      "-c",
      `model_providers.fake={name="fake",base_url="${url}/v1",wire_api="responses",env_key="FAKE_KEY",supports_websockets=false}`,
      "-m",
      "gpt-5",
      prompt,
    ],
    // Without a review of the hooks, which needs its interactive interface. It has no tool for files with this model.
    hooks: {
      name: "codex",
      reported: "Bash",
      shell: command => ["exec_command", { cmd: command }],
      args: (prompt, context) => [
        "exec",
        "--dangerously-bypass-hook-trust",
        "--sandbox",
        "workspace-write",
        ...AGENTS.codex.args(prompt, context).slice(1),
      ],
    },
  },
  gemini: {
    title: "Gemini CLI",
    package: "@google/gemini-cli",
    program: "gemini",
    reports: /^gemini-cli-mcp-client/,
    configure: ({ home }) =>
      write(home, ".gemini/settings.json", {
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
      }),
    list: ["mcp", "list"],
    listed: /mcp-sidecar: .*Connected/,
    env: ({ url }) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: "dummy", GEMINI_CLI_TRUST_WORKSPACE: "true" }),
    args: prompt => ["--yolo", "-m", "gemini-2.5-flash", "-p", prompt],
    hooks: {
      name: "gemini",
      // Told to ask, it waits for its user even if it has none.
      waits: true,
      shell: command => ["run_shell_command", { command, description: "a test" }],
      write: (file, content) => ["write_file", { file_path: file, content }],
    },
  },
  qwen: {
    title: "Qwen Code",
    package: "@qwen-code/qwen-code",
    program: "qwen",
    reports: /^qwen-cli-mcp-client/,
    configure: () => {},
    list: ["mcp", "list"],
    listed: /mcp-sidecar: .*Connected/,
    env: ({ url }) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "dummy" }),
    args: prompt => ["--yolo", "--auth-type", "openai", "-m", "fake-model", "-p", prompt],
  },
  opencode: {
    title: "opencode",
    package: "opencode-ai",
    program: "opencode",
    reports: /^opencode$/,
    configure: context =>
      write(context.home, ".config/opencode/opencode.json", {
        provider: {
          fake: {
            npm: "@ai-sdk/openai-compatible",
            name: "Fake",
            options: { baseURL: `${context.url}/v1`, apiKey: "dummy" },
            models: { "fake-model": { name: "Fake", tool_call: true } },
          },
        },
      }),
    list: ["mcp", "list"],
    listed: /mcp-sidecar.*connected/,
    env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" }),
    args: prompt => ["run", "-m", "fake/fake-model", prompt],
  },
  copilot: {
    title: "Copilot CLI",
    package: "@github/copilot",
    program: "copilot",
    reports: /^copilot-cli$/,
    configure: () => {},
    list: ["mcp", "list"],
    listed: /mcp-sidecar/,
    env: ({ url }) => ({
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_TYPE: "openai",
      COPILOT_PROVIDER_API_KEY: "x",
      COPILOT_MODEL: "gpt-5",
      COPILOT_OFFLINE: "true",
    }),
    args: prompt => ["-p", prompt, "--allow-all-tools", "--no-auto-update"],
    hooks: {
      name: "copilot",
      shell: command => ["bash", { command, description: "a test" }],
      write: (file, content) => ["create", { path: file, file_text: content }],
      // Without `--allow-all-tools`, it asks.
      args: prompt => ["-p", prompt, "--no-auto-update"],
    },
  },
  continue: {
    title: "Continue",
    package: "@continuedev/cli",
    program: "cn",
    reports: /^continue-cli-client$/,
    configure: ({ home, url }) =>
      write(
        home,
        ".continue/config.yaml",
        `name: test
version: 1.0.0
schema: v1
models:
  - name: fake
    provider: openai
    model: fake-model
    apiBase: ${url}/v1
    apiKey: dummy
    roles: [chat]
    capabilities: [tool_use]
`,
      ),
    env: () => ({ CONTINUE_TELEMETRY_ENABLED: "0", CONTINUE_CLI_AUTO_UPDATED: "1" }),
    args: (prompt, { home }) => ["-p", prompt, "--config", path.join(home, ".continue/config.yaml"), "--auto"],
  },
  cline: {
    title: "Cline",
    package: "cline",
    program: "cline",
    reports: /^@cline\/core$/,
    configure: context => {
      const settings = {
        provider: "openai-compatible",
        apiKey: "dummy",
        model: "fake-model",
        baseUrl: `${context.url}/v1`,
      };
      const providers = {
        "openai-compatible": { settings, updatedAt: "2026-01-01T00:00:00.000Z", tokenSource: "manual" },
      };
      const file = { version: 1, lastUsedProvider: "openai-compatible", modes: {}, providers };
      write(context.home, ".cline/data/settings/providers.json", file);
    },
    list: ["config", "mcp"],
    listed: /mcp-sidecar \[stdio\]/,
    env: () => ({ CLINE_TELEMETRY_DISABLED: "1" }),
    args: prompt => ["--json", prompt],
  },
};
