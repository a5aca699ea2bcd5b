//! A file for each program: where its config files are, and how they differ.

pub mod claude;
pub mod claude_desktop;
pub mod cline;
pub mod codex;
pub mod continue_;
pub mod copilot;
pub mod cursor;
pub mod gemini;
pub mod goose;
pub mod mcphub;
pub mod opencode;
pub mod qwen;
pub mod vscode;
pub mod windsurf;
pub mod zed;
