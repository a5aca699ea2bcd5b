---@brief
---
--- mcp-sidecar is a language server for the config files of MCP servers (`mcp.json` and its variants). It also runs these
--- servers: code lenses and code actions start and stop them, trust them and call their tools.
---
--- Install the program `mcp-sidecar`, then enable it:
---
--- ```lua
--- vim.lsp.enable("mcp_sidecar")
--- ```
---
--- This file needs no plugin. The Neovim plugin of mcp-sidecar adds a dashboard, forms and prompts, and brings its own
--- config.

local files = { "mcp.json", ".mcp.json", "mcp.local.json", ".vscode/mcp.json", ".cursor/mcp.json" }

local function is_config_file(path)
  return vim.iter(files):any(function(file) return vim.endswith(path, "/" .. file) end)
end

---@type vim.lsp.Config
return {
  cmd = { "mcp-sidecar", "lsp" },
  filetypes = { "json", "jsonc" },
  root_dir = function(buffer, on_dir)
    local path = vim.fs.normalize(vim.api.nvim_buf_get_name(buffer))
    if not is_config_file(path) then return end
    local folder = vim.fs.dirname(path):gsub("/%.vscode$", ""):gsub("/%.cursor$", "")
    on_dir(folder)
  end,
}
