--- The dashboard as rows of text: (what is known, which view, how wide) → rows. Draws nothing and asks nobody.

local look = require("mcp_sidecar.ui.look")
local logs = require("mcp_sidecar.ui.logs")

local M = {}

---@class mcp_sidecar.Row
---@field text string
---@field spans { [1]: integer, [2]: integer, [3]: string }[] from, to, highlight group
---@field id? string the same thing has the same id in the next picture
---@field kind? "server"|"tool"|"approval"|"call"|"grant"
---@field item? table

---@param chunks { [1]: string, [2]?: string }[]
---@return mcp_sidecar.Row
local function row(chunks, id, kind, item)
  local text, spans = "", {}
  for _, chunk in ipairs(chunks) do
    local from = #text
    text = text .. chunk[1]
    if chunk[2] and chunk[1] ~= "" then
      table.insert(spans, { from, #text, chunk[2] })
    end
  end
  return { text = (text:gsub("%s+$", "")), spans = spans, id = id, kind = kind, item = item }
end

local function title(text)
  return row({ { " " .. text, "McpTitle" } }, "title:" .. text)
end

local function blank(id)
  return row({}, "blank:" .. id)
end

local function note(text, id)
  return row({ { "   " .. text, "McpMuted" } }, id or text)
end

local function plural(count, word)
  return ("%d %s%s"):format(count, word, count == 1 and "" or "s")
end

---@param server mcp_sidecar.Server
local function counts(server)
  local parts = {}
  for _, part in ipairs({
    { server.toolCount, "tool" },
    { server.resourceCount, "resource" },
    { server.promptCount, "prompt" },
  }) do
    if (part[1] or 0) > 0 then
      table.insert(parts, plural(part[1], part[2]))
    end
  end
  return table.concat(parts, "  ")
end

---What to say about a server beside its name: why it is not connected, or what it has.
local function story(server)
  if server.status == "disabled" then
    return "switched off in its file", "McpMuted"
  elseif server.status == "failed" then
    return server.error or "failed", "McpFailed"
  elseif server.status == "needs-auth" then
    return "needs you to sign in: i", "McpNeedsAuth"
  elseif server.needsTrust or server.reason == "awaiting-trust" then
    return server.trustDiff and "changed since you trusted it: t" or "waits until you trust it: t", "McpPending"
  elseif server.status == "pending" then
    return server.reason or "starting", "McpPending"
  elseif server.status == "connected" then
    return counts(server), nil
  end
  return (server.config or {}).description or "", "McpMuted"
end

---@param tool mcp_sidecar.Tool
local function tool_row(tool, widths, indent, width)
  local manner, group = look.manner(tool.annotations)
  local room = width - indent - widths.tool - widths.level - widths.manner - 8
  local source = room > 50 and 2 + widths.source or 0
  local words = tool.changed and "changed since you allowed it" or tool.description
  return row({
    { (" "):rep(indent) },
    { look.pad(tool.tool, widths.tool), "McpTool" },
    { "  " .. look.pad(tool.level, widths.level), look.level_group(tool.level) },
    { "  " .. look.pad(manner, widths.manner), group },
    { "  " .. look.pad(words, math.max(8, room - source)), tool.changed and "McpAsks" or nil },
    { source > 0 and "  " .. look.fit(tool.source, widths.source) or "", "McpMuted" },
  }, "tool:" .. tool.name, "tool", tool)
end

local function tool_widths(tools)
  local widths = { tool = 8, level = 12, manner = 0, source = 0 }
  for _, tool in ipairs(tools) do
    widths.tool = math.min(28, math.max(widths.tool, vim.api.nvim_strwidth(tool.tool)))
    widths.level = math.max(widths.level, #tool.level)
    widths.manner = math.max(widths.manner, #look.manner(tool.annotations))
    widths.source = math.min(28, math.max(widths.source, vim.api.nvim_strwidth(tool.source or "")))
  end
  return widths
end

local function add_approvals(rows, approvals, width)
  for _, approval in ipairs(approvals) do
    local mark = approval.kind == "trust" and approval.diff and "changed" or approval.kind
    table.insert(
      rows,
      row({
        { "   " .. look.icon("ask") .. " ", "McpAsks" },
        { look.pad(approval.title, math.max(20, width - 34)) },
        { "  " .. look.pad(mark, 11), "McpMuted" },
        { " <CR>", "McpKey" },
        { " answer", "McpMuted" },
      }, "approval:" .. approval.id, "approval", approval)
    )
  end
end

local function sorted(servers)
  local list = vim.tbl_values(servers)
  table.sort(list, function(one, other)
    return one.name < other.name
  end)
  return list
end

local function add_details(rows, server, data, width)
  local function detail(label, text, group)
    if text and text ~= "" then
      for place, line in ipairs(vim.split(text, "\n")) do
        local shown = row({
          { "       " .. look.pad(place == 1 and label or "", 9), "McpMuted" },
          { look.fit(line, width - 18), group },
        }, ("detail:%s:%s:%d"):format(server.name, label, place), "server", server)
        table.insert(rows, shown)
      end
    end
  end
  detail("error", server.error, "McpFailed")
  detail("changed", server.trustDiff, "McpPending")
  for place, warning in ipairs(server.warnings or {}) do
    detail(place == 1 and "warning" or "", warning, "McpPending")
  end
  local tools = data.tools[server.name]
  if server.toolCount > 0 and not tools then
    table.insert(rows, note("    …", "loading:" .. server.name))
  end
  local widths = tool_widths(tools or {})
  for _, tool in ipairs(tools or {}) do
    table.insert(rows, tool_row(tool, widths, 7, width))
  end
  if server.status ~= "connected" or #(tools or {}) == 0 then
    local command = (server.config or {}).command or (server.config or {}).url
    local words = { type(command) == "table" and table.concat(command, " ") or command }
    vim.list_extend(words, (server.config or {}).args or {})
    detail("runs", table.concat(vim.tbl_map(tostring, words), " "))
  end
  detail(
    "from",
    server.file and vim.fn.fnamemodify(server.file, ":~:.") .. (server.line and ":" .. server.line + 1 or "")
  )
end

local views = {}

function views.servers(data, width)
  local rows = {}
  if #data.approvals > 0 then
    table.insert(rows, title("Waiting for you"))
    add_approvals(rows, data.approvals, width)
    table.insert(rows, blank("approvals"))
  end
  local servers = sorted(data.servers)
  local names = 8
  for _, server in ipairs(servers) do
    names = math.min(28, math.max(names, vim.api.nvim_strwidth(server.name)))
  end
  table.insert(rows, title("Servers"))
  if #servers == 0 then
    table.insert(
      rows,
      note(
        data.running and "no servers yet: describe one in mcp.json" or "the sidecar is not running: u starts it",
        "none"
      )
    )
  end
  for _, server in ipairs(servers) do
    local group = look.status_groups[server.status]
    local text, text_group = story(server)
    local word = (server.enabled or server.status == "disabled") and server.status or server.status .. " off"
    local wide = width >= 100
    local tail = wide and ("%s  %s"):format(server.transport, server.scope) or server.scope
    local latency = server.latencyMs and look.duration(server.latencyMs) or ""
    local room = width - names - 2 - 20 - #tail - 3 - 9
    table.insert(
      rows,
      row({
        { " " .. look.icon(data.unfolded[server.name] and "unfolded" or "folded") .. " ", "McpMuted" },
        { look.icon(server.status) .. " ", group },
        { look.pad(server.name, names), server.enabled and "McpServer" or "McpMuted" },
        { "  " .. look.pad(word, 13), group },
        { "  " .. look.pad(text, math.max(10, room)), text_group },
        { " " .. look.pad(latency, 7), "McpMuted" },
        { "  " .. tail, "McpMuted" },
      }, "server:" .. server.name, "server", server)
    )
    if data.unfolded[server.name] then
      add_details(rows, server, data, width)
    end
  end
  return rows
end

function views.tools(data, width)
  local rows = {}
  for _, server in ipairs(sorted(data.servers)) do
    local tools = data.tools[server.name] or {}
    if #tools > 0 then
      table.insert(rows, title(server.name))
      local widths = tool_widths(tools)
      for _, tool in ipairs(tools) do
        table.insert(rows, tool_row(tool, widths, 3, width))
      end
      table.insert(rows, blank(server.name))
    end
  end
  if #rows == 0 then
    table.insert(rows, note("no tools: no server is connected yet", "none"))
  end
  return rows
end

function views.approvals(data, width)
  local rows = { title("Waiting for you") }
  add_approvals(rows, data.approvals, width)
  if #data.approvals == 0 then
    table.insert(rows, note("nothing waits for an answer", "none"))
  end
  return rows
end

function views.calls(data, width)
  local rows = { title("Calls") }
  for _, call in ipairs(data.calls) do
    local who = (call.requester or {}).name or (call.requester or {}).kind or ""
    local told = call.error or ("%s by %s"):format(call.decision, call.decidedBy)
    table.insert(
      rows,
      row({
        { "   " .. look.clock(call.time) .. " ", "McpMuted" },
        { look.icon(call.success and "ok" or "failed") .. " ", call.success and "McpConnected" or "McpFailed" },
        { look.pad(call.server .. "/" .. call.tool, 28), "McpTool" },
        { " " .. look.pad(look.duration(call.durationMs), 8), "McpMuted" },
        { " " .. look.pad(who, 10) },
        { " " .. look.fit(told, math.max(10, width - 66)), call.error and "McpFailed" or "McpMuted" },
      }, "call:" .. call.callId, "call", call)
    )
  end
  if #data.calls == 0 then
    table.insert(rows, note("no tool was called yet", "none"))
  end
  return rows
end

function views.grants(data)
  local rows = { title("What you have allowed") }
  for _, grant in ipairs(data.grants) do
    table.insert(
      rows,
      row({
        { "   " .. look.pad(grant.server .. "/" .. grant.tool, 36), "McpTool" },
        { "  " .. look.pad(grant.level, 16), look.level_group(grant.level) },
        { "  " .. look.pad(grant.scope, 9) },
        { "  since " .. (grant.since or ""):sub(1, 10), "McpMuted" },
        { "  x", "McpKey" },
        { " revoke", "McpMuted" },
      }, "grant:" .. grant.id, "grant", grant)
    )
  end
  if #data.grants == 0 then
    table.insert(rows, note("nothing: every answer was for once", "none"))
  end
  return rows
end

function views.log(data, width)
  local rows = { title("Log") }
  for place, line in ipairs(data.log) do
    table.insert(rows, row({ { " " .. look.fit(logs.line(line), width - 2), logs.group(line) } }, "log:" .. place))
  end
  if #data.log == 0 then
    table.insert(rows, note("nothing logged yet", "none"))
  end
  return rows
end

M.views = { "servers", "tools", "approvals", "calls", "grants", "log" }

---@return mcp_sidecar.Row[]
function M.build(view, data, width)
  return views[view](data, width)
end

---The line above: how things stand, and the views.
function M.winbar(view, data, width)
  local count = { connected = 0, failed = 0, pending = 0, ["needs-auth"] = 0 }
  for _, server in pairs(data.servers) do
    count[server.status] = (count[server.status] or 0) + 1
  end
  local text = "%#McpTitle# MCP "
  for _, status in ipairs({ "connected", "failed", "needs-auth", "pending" }) do
    if count[status] > 0 then
      local word = width >= 110 and " " .. status or ""
      text = text .. ("%%#%s# %s %d%s"):format(look.status_groups[status], look.icon(status), count[status], word)
    end
  end
  if #data.approvals > 0 then
    text = text .. ("%%#McpAsks#  ? %d%s"):format(#data.approvals, width >= 110 and " waiting" or "")
  end
  text = text .. "%="
  for place, name in ipairs(M.views) do
    local label = name:sub(1, 1):upper() .. name:sub(2)
    text = text .. ("%%#McpKey# %d%%#%s# %s"):format(place, name == view and "McpTitle" or "McpMuted", label)
  end
  return text .. "%#McpKey#  g?%#McpMuted# help "
end

return M
