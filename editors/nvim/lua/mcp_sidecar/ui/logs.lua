--- The log of one server, following what comes, and the sidecar's own.

local client = require("mcp_sidecar.client")
local look = require("mcp_sidecar.ui.look")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_logs")
local groups = { error = "McpFailed", critical = "McpFailed", warning = "McpPending", warn = "McpPending" }

---@param line { time: string, source: string, level: string, text: string, server?: string }
---@param width? integer of the server's name, where it is told
---@return string
function M.line(line, width)
  local from, text = width and look.pad(line.server, width) .. " " or "", (line.text or ""):gsub("%c+", " ")
  return ("%s %s%-7s %s"):format(look.clock(line.time), from, line.level or line.source or "", text)
end

function M.group(line) return groups[line.level] end

local function open(name, winbar)
  local buffer = look.buffer("mcp-log://" .. name, "mcp-log")
  return buffer, look.show(buffer, { winbar = look.winbar({ { " " .. winbar, "McpTitle" } }, { { "q", "close" } }) })
end

---@param server string
function M.open(server)
  local buffer, window = open(server, "log of " .. server)
  local function fill()
    client.fetch("mcp.server.logs", { server = server, limit = 1000 }, function(result)
      if not vim.api.nvim_buf_is_valid(buffer) then return end
      local lines, marks = {}, {}
      for place, line in ipairs(result.lines) do
        lines[place] = M.line(line)
        if M.group(line) then table.insert(marks, { place - 1, M.group(line) }) end
      end
      local at_end = vim.api.nvim_win_is_valid(window)
        and vim.api.nvim_win_get_cursor(window)[1] == vim.api.nvim_buf_line_count(buffer)
      look.set_lines(buffer, #lines > 0 and lines or { "nothing logged yet" })
      look.colour(buffer, namespace, marks)
      if at_end then vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 }) end
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
      local text = done.stdout ~= "" and done.stdout or done.stderr
      look.set_lines(buffer, vim.split(vim.trim(text or ""), "\n"))
      vim.cmd.normal({ "G", bang = true })
    end)
  end)
end

return M
