--- Highlight groups, icons, and the formatting of text for the screen.

local M = {}

---@alias mcp_sidecar.Chunk { [1]: string, [2]?: string } text and highlight group

---@class mcp_sidecar.Line a line in highlighted pieces
---@field [integer] mcp_sidecar.Chunk
---@field group? string highlights the whole line, to the edge of the window

local links = {
  McpTitle = "Title",
  McpServer = "Identifier",
  McpTool = "Function",
  McpKey = "Special",
  McpNext = "WarningMsg",
  McpMuted = "Comment",
  McpOk = "DiagnosticOk",
  McpWarn = "DiagnosticWarn",
  McpError = "DiagnosticError",
  McpAdded = "DiffAdd",
  McpRemoved = "DiffDelete",
}

-- Default links: a colour scheme or the user may define these groups.
for name, link in pairs(links) do
  vim.api.nvim_set_hl(0, name, { link = link, default = true })
end

---Servers are listed in this order: what needs the user comes first.
---@type table<mcp_sidecar.Tone, { icon: string, group: string, order: integer }>
M.tones = {
  bad = { icon = "✗", group = "McpError", order = 1 },
  attention = { icon = "◆", group = "McpWarn", order = 2 },
  busy = { icon = "◌", group = "McpWarn", order = 3 },
  good = { icon = "●", group = "McpOk", order = 4 },
  muted = { icon = "○", group = "McpMuted", order = 5 },
}

---The mark and the highlight group of a success or a failure.
---@param success boolean
---@return string mark, string group
function M.outcome(success) return success and "✓" or "✗", success and "McpOk" or "McpError" end

---@type mcp_sidecar.Level[]
M.levels = require("mcp_sidecar.lists").levels

---@param level mcp_sidecar.Level
---@return string group
function M.level_group(level)
  if level == "deny" or level == "disable" then return "McpError" end
  return level == "require-approval" and "McpWarn" or "McpOk"
end

---What a tool does according to its annotations, in one word.
---@param annotations? mcp_sidecar.Annotations
---@return string word, string group
function M.effect(annotations)
  annotations = annotations or {}
  if annotations.readOnly then return "reads", "McpMuted" end
  if annotations.destructive then return "destroys", "McpError" end
  if annotations.readOnly == false then return "writes", "McpWarn" end
  return "", "McpMuted"
end

-- Text ------------------------------------------------------------------------------------------------------------

---Text on one line, cut to a display width.
---@param text any
---@param width integer
---@return string
function M.fit(text, width)
  text = tostring(text or ""):gsub("%c+", " ")
  return vim.api.nvim_strwidth(text) <= width and text
    or vim.fn.printf(("%%.%dS…"):format(math.max(0, width - 1)), text)
end

---Text cut or padded to a display width.
---@param text any
---@param width integer
---@return string
function M.pad(text, width) return vim.fn.printf(("%%-%dS"):format(width), M.fit(text, width)) end

---Text wrapped at a display width, at blanks where possible.
---@param text string
---@param width integer
---@return string[]
function M.wrap(text, width)
  local lines = {}
  for paragraph in vim.gsplit(text, "\n") do
    while vim.api.nvim_strwidth(paragraph) > width do
      local head = vim.fn.strcharpart(paragraph, 0, width + 1):match("^(.*%S)%s")
      head = head or vim.fn.strcharpart(paragraph, 0, width)
      table.insert(lines, head)
      paragraph = vim.trim(paragraph:sub(#head + 1))
    end
    table.insert(lines, paragraph)
  end
  return lines
end

---The subtype of a media type such as `text/x-python; charset=utf-8`, if it is one of these.
---@param mime? string
---@param kinds string[]
---@return string?
function M.kind_of(mime, kinds)
  local kind = ((mime or ""):match("^%w+/([%w-]+)") or ""):gsub("^x%-", "")
  return vim.tbl_contains(kinds, kind) and kind or nil
end

---A duration for people.
---@param ms? number
---@return string
function M.duration(ms)
  if not ms then return "" end
  if ms >= 1000 then return ("%.1f s"):format(ms / 1000) end
  return (ms < 10 and "%.1f ms" or "%d ms"):format(ms)
end

---An estimate of tokens for people: `~340`, `~1.2k`, `~12k`.
---@param count? integer
---@return string
function M.tokens(count)
  if not count then return "" end
  if count < 1000 then return ("~%d"):format(count) end
  return (count < 9950 and "~%.1fk" or "~%.0fk"):format(count / 1000)
end

---The local time of day of an RFC 3339 time in UTC.
---@param time? string
---@return string
function M.clock(time)
  local seconds = vim.fn.strptime("%Y-%m-%dT%H:%M:%S", (time or ""):sub(1, 19))
  if seconds == 0 then return time or "" end
  local now = os.time()
  local ahead = now - os.time(os.date("!*t", now) --[[@as any]])
  return os.date("%H:%M:%S", seconds + ahead) --[[@as string]]
end

---@param line mcp_sidecar.Line|mcp_sidecar.Chunk[]
---@return string
function M.text(line)
  return vim.iter(ipairs(line)):map(function(_, chunk) return chunk[1] end):join("")
end

return M
