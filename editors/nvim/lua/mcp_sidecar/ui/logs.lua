--- The log of one server, following what comes, and the sidecar's own.

local client = require("mcp_sidecar.client")
local look = require("mcp_sidecar.ui.look")

local M = {}

local groups = { error = "McpError", critical = "McpError", warning = "McpWarn", warn = "McpWarn" }

---@param line mcp_sidecar.LogLine
---@return string? group
function M.group(line) return groups[line.level] end

local function open(name, title)
  local buffer = look.buffer("mcp-log://" .. name, "mcp-log")
  return buffer, look.show(buffer, { winbar = look.winbar({ { " " .. title, "McpTitle" } }, { { "q", "close" } }) })
end

---@param server string
function M.open(server)
  local buffer, window = open(server, "log of " .. server)
  local function fill()
    client.fetch("mcp.server.logs", { server = server, limit = 1000 }, function(result)
      if not vim.api.nvim_buf_is_valid(buffer) then return end
      local lines = vim.tbl_map(function(line)
        local time, level = look.clock(line.time) .. " ", look.pad(line.level or line.source, 7) .. " "
        return { { time, "McpMuted" }, { level .. line.text:gsub("%c+", " "), M.group(line) } }
      end, result.lines)
      local function last() return vim.api.nvim_buf_line_count(buffer) end
      local follows = vim.api.nvim_win_is_valid(window) and vim.api.nvim_win_get_cursor(window)[1] == last()
      look.paint(buffer, #lines > 0 and lines or { { { "nothing logged yet", "McpMuted" } } })
      if follows then vim.api.nvim_win_set_cursor(window, { last(), 0 }) end
    end)
  end
  local off = client.on("log", function(line)
    if line.server == server then fill() end
  end)
  vim.api.nvim_create_autocmd("BufWipeout", { buffer = buffer, once = true, callback = off })
  fill()
end

---The sidecar's own log, newest at the end.
function M.own()
  local cmd = require("mcp_sidecar.config").cmd()
  if not cmd then return client.may_start() end
  vim.system({ cmd[1], "log" }, { text = true }, function(done)
    vim.schedule(function()
      local buffer = open("sidecar", "log of the sidecar")
      look.set_lines(buffer, vim.split(vim.trim(done.stdout ~= "" and done.stdout or done.stderr or ""), "\n"))
      vim.cmd.normal({ "G", bang = true })
    end)
  end)
end

return M
