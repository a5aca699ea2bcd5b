--- The MCP server `nvim`: reads the open buffers, the selection and the diagnostics. It changes nothing.

local open_files = require("mcp_sidecar.open_files")

local read_only = { readOnlyHint = true, openWorldHint = false }
---@type table<integer, string>
local severities = { "error", "warning", "information", "hint" }

---The window of the file that the user was in last, never a window of this plugin.
local function file_window()
  local windows = { vim.api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  for _, window in ipairs(vim.list_extend(windows, vim.api.nvim_list_wins())) do
    if window ~= 0 and vim.bo[vim.api.nvim_win_get_buf(window)].buftype == "" then return window end
  end
  return windows[1]
end

local function find(path)
  if not path then return vim.api.nvim_win_get_buf(file_window()) end
  local wanted = vim.fs.normalize(vim.fn.fnamemodify(path, ":p"))
  local function is_wanted(buffer) return vim.fs.normalize(vim.api.nvim_buf_get_name(buffer)) == wanted end
  return vim.iter(open_files.list()):find(is_wanted) or error(("`%s` is not open in the editor"):format(path), 0)
end

local function buffers()
  local listed = vim.tbl_filter(function(buffer) return vim.bo[buffer].buflisted end, open_files.list())
  local function describe(buffer)
    return {
      path = vim.api.nvim_buf_get_name(buffer),
      filetype = vim.bo[buffer].filetype,
      modified = vim.bo[buffer].modified,
      lines = vim.api.nvim_buf_line_count(buffer),
    }
  end
  return { buffers = vim.tbl_map(describe, listed) }
end

---@param arguments { path?: string, first?: integer, last?: integer }
local function read(arguments)
  local buffer = find(arguments.path)
  local first, last = arguments.first or 1, arguments.last or -1
  return table.concat(vim.api.nvim_buf_get_lines(buffer, first - 1, last, false), "\n")
end

local function diagnostics(arguments)
  local function describe(problem)
    return {
      path = vim.api.nvim_buf_get_name(problem.bufnr),
      line = problem.lnum + 1,
      severity = severities[problem.severity],
      message = problem.message,
      source = problem.source,
    }
  end
  return { diagnostics = vim.tbl_map(describe, vim.diagnostic.get(arguments.path and find(arguments.path) or nil)) }
end

local function selection()
  local window = file_window()
  local buffer = vim.api.nvim_win_get_buf(window)
  local first, last = vim.api.nvim_buf_get_mark(buffer, "<")[1], vim.api.nvim_buf_get_mark(buffer, ">")[1]
  local text = first > 0 and table.concat(vim.api.nvim_buf_get_lines(buffer, first - 1, last, false), "\n") or ""
  return {
    path = vim.api.nvim_buf_get_name(buffer),
    cursor = vim.api.nvim_win_get_cursor(window)[1],
    first = first,
    last = last,
    text = text,
  }
end

local path = { type = "string", description = "An open file; default: the current one" }

return {
  instructions = "What is open in the user's Neovim, including unsaved changes.",
  connect = false,
  tools = {
    buffers = { description = "Lists the files that are open", annotations = read_only, run = buffers },
    read_buffer = {
      description = "Reads an open file, including unsaved changes",
      annotations = read_only,
      input = {
        type = "object",
        properties = {
          path = path,
          first = { type = "integer", minimum = 1, description = "First line" },
          last = { type = "integer", minimum = 1, description = "Last line" },
        },
      },
      run = read,
    },
    diagnostics = {
      description = "Lists the diagnostics of linters and language servers",
      annotations = read_only,
      input = { type = "object", properties = { path = path } },
      run = diagnostics,
    },
    selection = { description = "Returns the text that was selected last", annotations = read_only, run = selection },
  },
}
