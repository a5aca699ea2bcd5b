--- The log of a server, which follows new lines, and the log of the sidecar.

local client = require("mcp_sidecar.client")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

local groups = { error = "McpError", critical = "McpError", warning = "McpWarn", warn = "McpWarn" }

---@param line mcp_sidecar.LogLine
---@return string? group
function M.group(line) return groups[line.level] end

---@return integer buffer
local function open(name, title)
  local buffer = windows.buffer("mcp-log://" .. name, "mcp-log")
  windows.show(buffer, { winbar = windows.winbar({ { " " .. title, "McpTitle" } }, { { "q", "close" } }) })
  return buffer
end

---Loads the log of a server that is shown. The cursor follows if it is on the last line.
local function fill(server)
  local window = windows.window_of("mcp-log://" .. server)
  if not window then return end
  local buffer = vim.api.nvim_win_get_buf(window)
  client.fetch("mcp.server.logs", { server = server, limit = 1000 }, function(result)
    if not vim.api.nvim_win_is_valid(window) or vim.api.nvim_win_get_buf(window) ~= buffer then return end
    local lines = vim.tbl_map(function(line)
      local time, level = style.clock(line.time) .. " ", style.pad(line.level, 7) .. " "
      return { { time, "McpMuted" }, { level .. line.text:gsub("%c+", " "), M.group(line) } }
    end, result.lines)
    local follows = vim.api.nvim_win_get_cursor(window)[1] == vim.api.nvim_buf_line_count(buffer)
    windows.paint(buffer, #lines > 0 and lines or { { { "no log lines yet", "McpMuted" } } })
    if follows then vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 }) end
  end)
end

client.on("log", function(line) fill(line.server) end)

---@param server string
function M.open(server)
  open(server, "log of " .. server)
  fill(server)
end

---Opens the log of the sidecar, newest lines last.
function M.own()
  local cmd = require("mcp_sidecar.binary").cmd()
  if not cmd then return client.may_start() end
  vim.system({ cmd[1], "log" }, { text = true }, function(done)
    vim.schedule(function()
      local buffer = open("sidecar", "log of the sidecar")
      windows.set_lines(buffer, vim.split(vim.trim(done.stdout ~= "" and done.stdout or done.stderr or ""), "\n"))
      vim.cmd.normal({ "G", bang = true })
    end)
  end)
end

return M
