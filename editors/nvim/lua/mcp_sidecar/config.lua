--- The user's options, and where to find the config files and the workspace of a buffer.

---@class mcp_sidecar.Config
---@field cmd? string|string[] the binary, or the whole command line
---@field lens? boolean status and buttons above each server of a config file
---@field editor_server? boolean offer this Neovim's buffers, diagnostics and selection as the MCP server `nvim`
---@field auto_focus? boolean focus the question about a call that you have just started; other questions never take the focus
---@field window? "split"|"vsplit"|"tab"|"float" where the dashboard, forms and results open
---@field images? "auto"|"kitty"|"sixel"|"none" how pictures in results are drawn
---@field release_url? string where `:Mcp install` downloads from
---@field settings? table<string, any> settings that go to the sidecar, as in its config.toml

local M = {}

---@type mcp_sidecar.Config
M.defaults = { lens = true, editor_server = false, auto_focus = true, window = "split", images = "auto", settings = {} }

-- Options without a default.
local optional = { cmd = "string", release_url = "string" }
-- The values of options that take no other.
local choices = { window = { "split", "vsplit", "tab", "float" }, images = { "auto", "kitty", "sixel", "none" } }

-- The config files that the sidecar reads, in each workspace folder.
local files = { "mcp.json", ".mcp.json", "mcp.local.json", ".vscode/mcp.json", ".cursor/mcp.json" }

---Reads `vim.g.mcp_sidecar`. An invalid option keeps its default and is reported.
---@return mcp_sidecar.Config options, string[] problems
local function read()
  local given = vim.g.mcp_sidecar
  if type(given) == "function" then given = given() end
  local options, problems = vim.deepcopy(M.defaults), {}
  for key, value in pairs(type(given) == "table" and given or {}) do
    local wanted = optional[key] or type(M.defaults[key])
    local whole_command = key == "cmd" and type(value) == "table" and type(value[1]) == "string"
    if wanted == "nil" then
      table.insert(problems, ("vim.g.mcp_sidecar has no option `%s`"):format(key))
    elseif type(value) ~= wanted and not whole_command then
      table.insert(problems, ("vim.g.mcp_sidecar.%s must be a %s"):format(key, wanted))
    elseif choices[key] and not vim.list_contains(choices[key], value) then
      local names = table.concat(choices[key], ", ")
      table.insert(problems, ("vim.g.mcp_sidecar.%s must be one of %s"):format(key, names))
    else
      options[key] = value
    end
  end
  return options, problems
end

---@type mcp_sidecar.Config?
local options

---@return mcp_sidecar.Config
function M.get()
  options = options or read()
  return options
end

function M.problems() return select(2, read()) end

---Discards the options that were read, after `setup()` changed them.
function M.forget() options = nil end

function M.user_file()
  local home = vim.env.MCP_SIDECAR_CONFIG_DIR
    or (vim.env.XDG_CONFIG_HOME or (vim.env.HOME or "") .. "/.config") .. "/mcp-sidecar"
  return vim.fs.normalize(home .. "/mcp.json")
end

---@param path string
function M.is_config_file(path)
  path = vim.fs.normalize(path)
  return path == M.user_file() or vim.iter(files):any(function(file) return vim.endswith(path, "/" .. file) end)
end

---The nearest folder, from this one up, that holds a config file.
local function folder_with_config(folder)
  local user = M.user_file()
  local function holds_one(place)
    return vim.iter(files):any(function(file)
      local path = vim.fs.joinpath(place, file)
      return path ~= user and vim.uv.fs_stat(path) ~= nil
    end)
  end
  return holds_one(folder) and folder or vim.iter(vim.fs.parents(folder)):find(holds_one)
end

---The workspace that a buffer belongs to; nil without a config file.
---@param buffer integer
function M.root(buffer)
  local path = vim.api.nvim_buf_get_name(buffer)
  if path == "" or path:match("^%a[%w+.-]+:") then return nil end
  path = vim.fs.normalize(vim.fn.fnamemodify(path, ":p"))
  if path == M.user_file() then return M.workspace_folder() end
  local found = folder_with_config(vim.fs.dirname(path))
  -- A new config file that is not saved yet counts as well.
  if found or not M.is_config_file(path) then return found end
  return (vim.fs.dirname(path):gsub("/%.vscode$", ""):gsub("/%.cursor$", ""))
end

---The workspace of `:Mcp` when the current buffer has none: derived from the current folder.
function M.workspace_folder()
  local here = vim.fs.normalize(vim.fn.getcwd())
  return folder_with_config(here) or vim.fs.root(here, ".git") or here
end

return M
