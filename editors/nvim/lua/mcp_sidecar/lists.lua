-- Generated from src/protocol by `make generate`. Do not edit.

return {
  dialects = {
    "vscode",
    "claude",
    "claude-desktop",
    "cursor",
    "windsurf",
    "zed",
    "cline",
    "codex",
    "gemini",
    "qwen",
    "opencode",
    "copilot",
    "continue",
    "goose",
    "mcphub",
  },
  levels = {
    "disable",
    "deny",
    "require-approval",
    "allow-once",
    "allow-session",
    "allow-project",
    "allow-always",
  },
}
