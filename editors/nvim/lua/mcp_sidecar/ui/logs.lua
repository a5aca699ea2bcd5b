--- The log of one server, or of all, following what comes.

local client = require("mcp_sidecar.client")
local look = require("mcp_sidecar.ui.look")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_logs")
local groups = { error = "McpFailed", critical = "McpFailed", warning = "McpPending", warn = "McpPending" }

---@param line { time: string, source: string, level: string, text: string, server?: string }
---@return string
function M.line(line)
  local from = line.server and line.server .. " " or ""
  return ("%s %s%-7s %s"):format(
    look.clock(line.time),
    from,
    line.level or line.source or "",
    (line.text or ""):gsub("%c+", " ")
  )
end

function M.group(line)
  return groups[line.level]
end

---@param server string
function M.open(server)
  local buffer = look.buffer("mcp-log://" .. server, "mcp-log")
  local window = look.show(buffer)
  vim.wo[window].wrap = false
  vim.wo[window].winbar = ("%%#McpTitle# log of %s %%#McpMuted# follows; q closes"):format(look.literal(server))
  look.map(buffer, "n", "q", look.close, "close")
  local function fill()
    client.command("mcp.server.logs", { server = server, limit = 1000 }, function(err, result)
      if err or not vim.api.nvim_buf_is_valid(buffer) then
        return client.complain(err)
      end
      local lines = vim.tbl_map(M.line, result.lines)
      local at_end = vim.api.nvim_win_is_valid(window)
        and vim.api.nvim_win_get_cursor(window)[1] == vim.api.nvim_buf_line_count(buffer)
      look.set_lines(buffer, #lines > 0 and lines or { "nothing logged yet" })
      vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
      for place, line in ipairs(result.lines) do
        if M.group(line) then
          vim.api.nvim_buf_set_extmark(buffer, namespace, place - 1, 0, { line_hl_group = M.group(line) })
        end
      end
      if at_end then
        vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
      end
    end)
  end
  local off = client.on("log", function(line)
    if line.server == server then
      fill()
    end
  end)
  vim.api.nvim_create_autocmd("BufWipeout", { buffer = buffer, once = true, callback = off })
  fill()
end

---The sidecar's own log, newest at the end.
function M.own()
  local cmd = require("mcp_sidecar.config").cmd()
  if not cmd then
    return client.may_start()
  end
  vim.system({ cmd[1], "log" }, { text = true }, function(done)
    vim.schedule(function()
      local buffer = look.buffer("mcp-log://sidecar", "mcp-log")
      local text = done.stdout ~= "" and done.stdout or done.stderr
      look.set_lines(buffer, vim.split(vim.trim(text or ""), "\n"))
      look.map(buffer, "n", "q", look.close, "close")
      local window = look.show(buffer)
      vim.wo[window].wrap = false
      vim.cmd.normal({ "G", bang = true })
    end)
  end)
end

return M
