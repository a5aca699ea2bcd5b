--- A question to the user as text: what is asked, by whom, with what, and which answers it takes. Draws no window.

local json = require("mcp_sidecar.json")
local look = require("mcp_sidecar.ui.look")

local M = {}

---Every answer there is, and its key.
M.answers = {
  { key = "y", decision = "allow-once", label = "once" },
  { key = "s", decision = "allow-session", label = "session" },
  { key = "p", decision = "allow-project", label = "project" },
  { key = "a", decision = "allow-always", label = "always" },
  { key = "y", decision = "accept", label = "accept" },
  { key = "n", decision = "deny", label = "deny" },
  { key = "N", decision = "deny", label = "deny with a note", note = true },
  { key = "d", decision = "disable", label = "disable" },
  { key = "n", decision = "decline", label = "decline" },
  { key = "c", decision = "cancel", label = "cancel" },
}

---The answers that this question takes.
---@param approval mcp_sidecar.Approval
function M.choices(approval)
  return vim.tbl_filter(function(answer) return vim.tbl_contains(approval.options, answer.decision) end, M.answers)
end

---Who asks, for which tool, and what it says that it does.
local function facts(approval, add)
  local who = approval.requester or {}
  local name = who.kind == "user" and "you" or ((who.kind or "?") .. " " .. (who.name or ""))
  add(("%s › %s   asked by %s"):format(approval.server, approval.tool or "", name), "McpServer")
  local manner, group = look.manner(approval.annotations)
  local outside = (approval.annotations or {}).openWorld and ", reaches the outside world" or ""
  local unknown = manner == ""
  add((unknown and "does not say whether it writes" or manner) .. outside, unknown and "McpAsks" or group)
end

---One argument on each line, then those of several lines in full.
local function arguments(given, add, marks, lines)
  add("")
  add("with", "McpMuted")
  local names = vim.tbl_keys(given)
  local function long(name) return type(given[name]) == "string" and given[name]:find("\n") ~= nil end
  table.sort(names, function(one, other)
    if long(one) ~= long(other) then return long(other) end
    return one < other
  end)
  if #names == 0 then add("  no arguments") end
  for _, name in ipairs(names) do
    local value = given[name]
    if long(name) then
      add("  " .. name .. ":", "McpKey")
      add("    " .. value:gsub("\n", "\n    "))
    else
      local row = #lines
      add(("  %s: %s"):format(name, json.pretty(value, "  ")))
      table.insert(marks, { row, "McpKey", 1, 4 + #name })
    end
  end
end

---@param approval mcp_sidecar.Approval
---@param root? string the workspace that it belongs to
---@return string[] lines, { [1]: integer, [2]: string, [3]?: integer, [4]?: integer }[] marks as `look.colour` takes them
function M.draw(approval, root)
  local lines, marks = {}, {}
  local function add(text, group)
    for _, line in ipairs(vim.split(text, "\n")) do
      table.insert(lines, " " .. line)
      if group then table.insert(marks, { #lines - 1, group }) end
    end
  end
  local function diff(label, changes)
    add("")
    add(label, "McpMuted")
    for _, line in ipairs(changes) do
      local group = ({ ["+"] = "McpAdded", ["-"] = "McpRemoved", ["@"] = "McpMuted" })[line:sub(1, 1)]
      add(line, group)
    end
  end
  add(approval.title, "McpTitle")
  if approval.kind == "tool" then facts(approval, add) end
  local changes, path = require("mcp_sidecar.ui.change").of(approval, root)
  if changes then diff("would change " .. path, changes) end
  if type(approval.arguments) == "table" then arguments(approval.arguments, add, marks, lines) end
  if approval.detail ~= "" then
    add("")
    for line in vim.gsplit(approval.detail, "\n") do
      -- What a tool says about itself comes last; what would be run is what trust is about.
      add(line, approval.kind == "tool" and "McpMuted" or line:match("^runs ") and "McpDanger" or nil)
    end
  end
  if approval.url then
    add("")
    add("opens  " .. approval.url, "McpDanger")
  end
  if approval.diff then diff("what changed", vim.split(approval.diff, "\n")) end
  return lines, marks
end

---The keys, as they stand at the foot of the window; where it is narrow, not those between yes and no.
---@param approval mcp_sidecar.Approval
---@param width integer
---@return { [1]: string, [2]: string }[]
function M.footer(approval, width)
  local function chunks(is_shown)
    local list, room = {}, 0
    local function key(name, label)
      vim.list_extend(list, { { " " .. name, "McpKey" }, { " " .. label .. " ", "McpMuted" } })
      room = room + #name + #label + 3
    end
    for place, answer in ipairs(M.choices(approval)) do
      if answer.decision == "accept" and approval.schema then
        key("f", "fill in")
      elseif not answer.note and is_shown(place, answer) then
        key(answer.key, answer.label)
      end
    end
    key("q", "later")
    key("?", "more")
    return list, room
  end
  local list, room = chunks(function() return true end)
  if room <= width then return list end
  return (chunks(function(place, answer) return place == 1 or answer.key == "n" end))
end

return M
