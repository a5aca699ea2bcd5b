--- The user's options, and where things are: the binary, the config files, the workspace of a buffer.

---@class mcp_sidecar.Config
---@field cmd? string|string[] the binary, or the whole command line
---@field icons? boolean false: plain ASCII
---@field lens? boolean status and buttons above each server of a config file
---@field editor_server? boolean offer this Neovim's buffers, diagnostics and selection as the MCP server `nvim`
---@field auto_focus? boolean let an approval take the focus when you have not typed for a second
---@field settings? table settings that go to the sidecar, as in its config.toml

local M = {}

---@type mcp_sidecar.Config
M.defaults = { icons = true, lens = true, editor_server = false, auto_focus = true, settings = {} }

local kinds =
  { icons = "boolean", lens = "boolean", editor_server = "boolean", auto_focus = "boolean", settings = "table" }

-- As the sidecar looks for them, in each workspace folder.
local files = { "mcp.json", ".mcp.json", "mcp.local.json", ".vscode/mcp.json", ".cursor/mcp.json" }

---What is wrong with `vim.g.mcp_sidecar`, a sentence each. A wrong option keeps its default.
---@return mcp_sidecar.Config options, string[] complaints
local function read()
  local given = vim.g.mcp_sidecar
  if type(given) == "function" then given = given() end
  local options, complaints = vim.deepcopy(M.defaults), {}
  for key, value in pairs(type(given) == "table" and given or {}) do
    if key == "cmd" and (type(value) == "string" or (type(value) == "table" and type(value[1]) == "string")) then
      options.cmd = value
    elseif key == "cmd" then
      table.insert(complaints, "vim.g.mcp_sidecar.cmd must be a string or a list of strings")
    elseif not kinds[key] then
      table.insert(complaints, ("vim.g.mcp_sidecar has no option `%s`"):format(key))
    elseif type(value) ~= kinds[key] then
      table.insert(complaints, ("vim.g.mcp_sidecar.%s must be a %s"):format(key, kinds[key]))
    else
      options[key] = value
    end
  end
  return options, complaints
end

local options, complaints

---@return mcp_sidecar.Config
function M.get()
  if not options then
    options, complaints = read()
  end
  return options
end

---@return string[]
function M.complaints()
  M.get()
  return complaints
end

---Forgets what was read, after `setup()` changed it.
function M.forget() options = nil end

---The command line of the sidecar, or what to do about its absence. Looked for in the user's options, in the
---repository that this plugin is part of, then in PATH.
---@return string[]? cmd, string? problem
function M.cmd()
  local given = M.get().cmd
  if given then
    local cmd = type(given) == "table" and vim.deepcopy(given) or { given }
    cmd[1] = vim.fs.normalize(cmd[1])
    if vim.fn.executable(cmd[1]) == 1 then return cmd end
    return nil, ("`%s` of vim.g.mcp_sidecar.cmd cannot be executed"):format(cmd[1])
  end
  local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p")
  local repository = vim.fn.fnamemodify(here, ":h:h:h:h:h")
  for _, program in ipairs({
    repository .. "/target/release/mcp-sidecar",
    repository .. "/target/debug/mcp-sidecar",
    "mcp-sidecar",
  }) do
    if vim.fn.executable(program) == 1 then return { program } end
  end
  return nil,
    ("mcp-sidecar is not installed: run `cargo build --release` in %s, put it into PATH, or set vim.g.mcp_sidecar.cmd"):format(
      repository
    )
end

---@return string
function M.user_file()
  local home = vim.env.MCP_SIDECAR_CONFIG_DIR
    or (vim.env.XDG_CONFIG_HOME or (vim.env.HOME or "") .. "/.config") .. "/mcp-sidecar"
  return vim.fs.normalize(home .. "/mcp.json")
end

---@param path string
function M.is_config_file(path)
  path = vim.fs.normalize(path)
  if path == M.user_file() then return true end
  for _, file in ipairs(files) do
    if vim.endswith(path, "/" .. file) then return true end
  end
  return false
end

---The nearest folder, from this one up, that holds a config file.
---@param folder string
---@return string?
function M.folder_with_config(folder)
  local user = M.user_file()
  while folder and folder ~= "" do
    for _, file in ipairs(files) do
      local path = folder .. "/" .. file
      if path ~= user and vim.uv.fs_stat(path) then return folder end
    end
    local above = vim.fs.dirname(folder)
    if above == folder then return nil end
    folder = above
  end
end

---The workspace that a buffer belongs to; nil when no config file speaks for it.
---@param buffer integer
---@return string?
function M.root(buffer)
  local path = vim.api.nvim_buf_get_name(buffer)
  if path == "" or path:match("^%a[%w+.-]+:") then return nil end
  path = vim.fs.normalize(vim.fn.fnamemodify(path, ":p"))
  if path == M.user_file() then return M.workspace() end
  local found = M.folder_with_config(vim.fs.dirname(path))
  -- A config file that is not written yet speaks for its folder all the same.
  if not found and M.is_config_file(path) then
    found = vim.fs.dirname(path)
    if found:match("/%.vscode$") or found:match("/%.cursor$") then found = vim.fs.dirname(found) end
  end
  return found
end

---Where `:Mcp` works when no buffer says it: around the current folder.
---@return string
function M.workspace()
  local here = vim.fs.normalize(vim.fn.getcwd())
  if M.folder_with_config(here) then return M.folder_with_config(here) end
  local git = vim.fs.find(".git", { path = here, upward = true })[1]
  return git and vim.fs.dirname(git) or here
end

return M
