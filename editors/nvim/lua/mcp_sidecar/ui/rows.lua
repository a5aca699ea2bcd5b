--- The dashboard as rows of text: (what is known, which view, how wide) → rows. Draws nothing and asks nobody.

local look = require("mcp_sidecar.ui.look")
local logs = require("mcp_sidecar.ui.logs")

local M = {}

---@class mcp_sidecar.Row
---@field text string
---@field spans { [1]: integer, [2]: integer, [3]: string }[] from, to, highlight group
---@field id? string the same thing has the same id in the next picture
---@field kind? "server"|"tool"|"approval"|"call"|"grant"|"log"
---@field item? table

---@class mcp_sidecar.Known what the rows are made from
---@field running boolean
---@field servers table<string, mcp_sidecar.Server>
---@field approvals mcp_sidecar.Approval[]
---@field unfolded table<string, boolean>
---@field tools table<string, mcp_sidecar.Tool[]>
---@field calls table[]
---@field grants table[]
---@field log table[]

---@param chunks { [1]: string, [2]?: string }[] text and highlight group
---@return mcp_sidecar.Row
local function row(chunks, id, kind, item)
  local text, spans = "", {}
  for _, chunk in ipairs(chunks) do
    local from = #text
    text = text .. chunk[1]
    if chunk[2] and chunk[1] ~= "" then table.insert(spans, { from, #text, chunk[2] }) end
  end
  return { text = (text:gsub("%s+$", "")), spans = spans, id = id, kind = kind, item = item }
end

local function title(text) return row({ { " " .. text, "McpTitle" } }, "title:" .. text) end
local function blank(id) return row({}, "blank:" .. id) end
local function note(text, id) return row({ { "   " .. text, "McpMuted" } }, id or "none") end

---The widest of some texts, within bounds.
local function widest(items, text, least, most)
  for _, item in ipairs(items) do
    least = math.min(most, math.max(least, vim.api.nvim_strwidth(text(item) or "")))
  end
  return least
end

---What to say about a server beside its name: why it is not connected, or what it has.
---@param server mcp_sidecar.Server
---@return string text, string? group
local function story(server)
  if server.status == "disabled" then return "switched off in its file", "McpMuted" end
  if server.status == "failed" then return server.error or "failed", "McpFailed" end
  if server.status == "needs-auth" then return "needs you to sign in: i", "McpNeedsAuth" end
  if server.needsTrust or server.reason == "awaiting-trust" then
    return server.trustDiff and "changed since you trusted it: t" or "waits until you trust it: t", "McpPending"
  end
  if server.status == "pending" then return server.reason or "starting", "McpPending" end
  if server.status ~= "connected" then return (server.config or {}).description or "", "McpMuted" end
  local parts = {}
  for _, part in ipairs({ "tool", "resource", "prompt" }) do
    local count = server[part .. "Count"] or 0
    if count > 0 then table.insert(parts, ("%d %s%s"):format(count, part, count == 1 and "" or "s")) end
  end
  return table.concat(parts, "  ")
end

---@param tools mcp_sidecar.Tool[]
---@param among? mcp_sidecar.Tool[] with which they share their columns
local function add_tools(rows, tools, indent, width, among)
  local name = widest(among or tools, function(tool) return tool.tool end, 8, 28)
  local level = widest(among or tools, function(tool) return tool.level end, 12, 20)
  local manner = widest(among or tools, function(tool) return (look.manner(tool.annotations)) end, 0, 10)
  local room = width - indent - name - level - manner - 8
  local source = room > 50 and widest(among or tools, function(tool) return tool.source end, 0, 28) or 0
  if source > 0 then room = room - source - 2 end
  for _, tool in ipairs(tools) do
    local word, group = look.manner(tool.annotations)
    local words = tool.changed and "changed since you allowed it" or tool.description
    local shown = row({
      { (" "):rep(indent) },
      { look.pad(tool.tool, name), "McpTool" },
      { "  " .. look.pad(tool.level, level), look.level_group(tool.level) },
      { "  " .. look.pad(word, manner), group },
      { "  " .. look.pad(words, math.max(8, room)), tool.changed and "McpAsks" or nil },
      { source > 0 and "  " .. look.fit(tool.source, source) or "", "McpMuted" },
    }, "tool:" .. tool.name, "tool", tool)
    table.insert(rows, shown)
  end
end

---@param approval mcp_sidecar.Approval
local function approval_row(approval, width)
  return row({
    { "   " .. look.icon("ask") .. " ", "McpAsks" },
    { look.pad(approval.title, math.max(20, width - 34)) },
    { "  " .. look.pad(approval.kind == "trust" and approval.diff and "changed" or approval.kind, 11), "McpMuted" },
    { " <CR>", "McpKey" },
    { " answer", "McpMuted" },
  }, "approval:" .. approval.id, "approval", approval)
end

---@param server mcp_sidecar.Server
---@param known mcp_sidecar.Known
local function add_details(rows, server, known, width)
  local function detail(label, text, group)
    for place, line in ipairs(text and text ~= "" and look.wrap(text, width - 18) or {}) do
      local id = ("detail:%s:%s:%d"):format(server.name, label, place)
      local chunks = { { "       " .. look.pad(place == 1 and label or "", 9), "McpMuted" }, { line, group } }
      table.insert(rows, row(chunks, id, "server", server))
    end
  end
  detail("error", server.error, "McpFailed")
  detail("changed", server.trustDiff, "McpPending")
  detail("warning", table.concat(server.warnings or {}, "\n"), "McpPending")
  local tools, definition = known.tools[server.name], server.config or {}
  if server.toolCount > 0 and not tools then table.insert(rows, note("    …", "loading:" .. server.name)) end
  add_tools(rows, tools or {}, 7, width)
  if server.status ~= "connected" or #(tools or {}) == 0 then
    local words = vim.iter({ definition.command or definition.url or {}, definition.args or {} }):flatten(2)
    detail("runs", words:map(tostring):join(" "))
  end
  local place = server.file and vim.fn.fnamemodify(server.file, ":~:.")
  detail("from", place and place .. (server.line and ":" .. server.line + 1 or ""))
end

---How it is reached, where there is room to say so, and where it comes from.
local function tail(server, width)
  return width >= 100 and ("%s  %s"):format(server.transport, server.scope) or server.scope
end

---@param server mcp_sidecar.Server
---@param widths { all: integer, name: integer, latency: integer, tail: integer }
local function server_row(server, unfolded, widths)
  local group = look.status_groups[server.status]
  local text, text_group = story(server)
  local word = (server.enabled or server.status == "disabled") and server.status or server.status .. " off"
  local room = widths.all - widths.name - widths.latency - widths.tail - 26
  return row({
    { " " .. look.icon(unfolded and "unfolded" or "folded") .. " ", "McpMuted" },
    { look.icon(server.status) .. " ", group },
    { look.pad(server.name, widths.name), server.enabled and "McpServer" or "McpMuted" },
    { "  " .. look.pad(word, 13), group },
    { "  " .. look.pad(text, math.max(10, room)), text_group },
    { look.pad(" " .. look.duration(server.latencyMs), widths.latency), "McpMuted" },
    { "  " .. tail(server, widths.all), "McpMuted" },
  }, "server:" .. server.name, "server", server)
end

---A title, a row for each item, or a word about their absence.
local function list(name, items, none, each)
  local rows = { title(name) }
  for place, item in ipairs(items) do
    table.insert(rows, each(item, place))
  end
  if #items == 0 then table.insert(rows, note(none)) end
  return rows
end

local function sorted(servers)
  local found = vim.tbl_values(servers)
  table.sort(found, function(one, other) return one.name < other.name end)
  return found
end

---@type table<string, fun(known: mcp_sidecar.Known, width: integer): mcp_sidecar.Row[]>
local views = {}

function views.servers(known, width)
  local rows, servers = {}, sorted(known.servers)
  if #known.approvals > 0 then
    vim.list_extend(rows, views.approvals(known, width))
    table.insert(rows, blank("approvals"))
  end
  local widths = {
    all = width,
    name = widest(servers, function(server) return server.name end, 8, 28),
    tail = widest(servers, function(server) return tail(server, width) end, 0, 30),
    latency = widest(servers, function(server) return look.duration(server.latencyMs) end, -1, 8) + 1,
  }
  table.insert(rows, title("Servers"))
  if #servers == 0 then
    local running = "no servers yet: A adds one, or describe one in mcp.json"
    table.insert(rows, note(known.running and running or "the sidecar is not running: u starts it"))
  end
  for _, server in ipairs(servers) do
    local unfolded = known.unfolded[server.name]
    table.insert(rows, server_row(server, unfolded, widths))
    if unfolded then add_details(rows, server, known, width) end
  end
  return rows
end

function views.tools(known, width)
  local rows, all = {}, vim.iter(vim.tbl_values(known.tools)):flatten():totable()
  for _, server in ipairs(sorted(known.servers)) do
    local tools = known.tools[server.name] or {}
    if #tools > 0 then
      table.insert(rows, title(server.name))
      add_tools(rows, tools, 3, width, all)
      table.insert(rows, blank(server.name))
    end
  end
  return #rows > 0 and rows or { note("no tools: no server is connected yet") }
end

function views.approvals(known, width)
  return list(
    "Waiting for you",
    known.approvals,
    "nothing waits for an answer",
    function(approval) return approval_row(approval, width) end
  )
end

function views.calls(known, width)
  local names = widest(known.calls, function(call) return call.server .. "/" .. call.tool end, 12, 28)
  return list("Calls", known.calls, "no tool was called yet", function(call)
    local who = (call.requester or {}).name or (call.requester or {}).kind or ""
    local told = call.error or ("%s by %s"):format(call.decision, call.decidedBy)
    return row({
      { "   " .. look.clock(call.time) .. " ", "McpMuted" },
      { look.icon(call.success and "ok" or "failed") .. " ", call.success and "McpConnected" or "McpFailed" },
      { look.pad(call.server .. "/" .. call.tool, names), "McpTool" },
      { " " .. look.pad(look.duration(call.durationMs), 8), "McpMuted" },
      { " " .. look.pad(who, 10) },
      { " " .. look.fit(told, math.max(10, width - names - 36)), call.error and "McpFailed" or "McpMuted" },
    }, "call:" .. call.callId, "call", call)
  end)
end

function views.grants(known)
  local names = widest(known.grants, function(grant) return grant.server .. "/" .. grant.tool end, 12, 36)
  return list(
    "What you have allowed",
    known.grants,
    "nothing: every answer was for once",
    function(grant)
      return row({
        { "   " .. look.pad(grant.server .. "/" .. grant.tool, names), "McpTool" },
        { "  " .. look.pad(grant.level, 16), look.level_group(grant.level) },
        { "  " .. look.pad(grant.scope, 9) },
        { "  since " .. (grant.since or ""):sub(1, 10), "McpMuted" },
        { "  x", "McpKey" },
        { " revoke", "McpMuted" },
      }, "grant:" .. grant.id, "grant", grant)
    end
  )
end

function views.log(known, width)
  local names = widest(known.log, function(line) return line.server end, 4, 20)
  return list("Log", known.log, "nothing logged yet", function(line, place)
    local text = look.fit(logs.line(line, names), width - 2)
    return row({ { " " .. text, logs.group(line) } }, "log:" .. place, "log", line)
  end)
end

M.views = { "servers", "tools", "approvals", "calls", "grants", "log" }

---@param view string
---@param known mcp_sidecar.Known
---@param width integer
---@return mcp_sidecar.Row[]
function M.build(view, known, width) return views[view](known, width) end

---The line above: how things stand, and the views.
---@param view string
---@param known mcp_sidecar.Known
---@param width integer
---@return string
function M.winbar(view, known, width)
  local count, parts = {}, { width >= 90 and "%#McpTitle# MCP " or "" }
  for _, server in pairs(known.servers) do
    count[server.status] = (count[server.status] or 0) + 1
  end
  for _, status in ipairs({ "connected", "failed", "needs-auth", "pending" }) do
    if count[status] then
      local word = width >= 110 and " " .. status or ""
      local part = ("%%#%s# %s %d%s"):format(look.status_groups[status], look.icon(status), count[status], word)
      table.insert(parts, part)
    end
  end
  if #known.approvals > 0 then
    table.insert(parts, ("%%#McpAsks#  ? %d%s"):format(#known.approvals, width >= 110 and " waiting" or ""))
  end
  table.insert(parts, "%=")
  for place, name in ipairs(M.views) do
    local label = (width >= 76 or name == view) and " " .. name:sub(1, 1):upper() .. name:sub(2) or ""
    table.insert(parts, ("%%#McpKey# %d%%#%s#%s"):format(place, name == view and "McpTitle" or "McpMuted", label))
  end
  return table.concat(parts) .. "%#McpKey#  g?%#McpMuted# " .. (width >= 90 and "help " or "")
end

return M
