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
  return vim.tbl_filter(function(answer)
    return vim.tbl_contains(approval.options, answer.decision)
  end, M.answers)
end

---@param approval mcp_sidecar.Approval
---@return string[] lines, { [1]: integer, [2]: string, [3]?: integer, [4]?: integer }[] marks by line from 0
function M.draw(approval)
  local lines, marks = {}, {}
  local function add(text, group)
    for _, line in ipairs(vim.split(text, "\n")) do
      table.insert(lines, " " .. line)
      if group then
        table.insert(marks, { #lines - 1, group })
      end
    end
  end
  add(approval.title, "McpTitle")
  local who = approval.requester or {}
  local facts = {}
  if approval.kind == "tool" then
    table.insert(facts, approval.server .. " › " .. (approval.tool or ""))
    table.insert(facts, "asked by " .. (who.kind == "user" and "you" or ((who.kind or "?") .. " " .. (who.name or ""))))
    add(table.concat(facts, "   "), "McpServer")
    local manner, group = look.manner(approval.annotations)
    local hints = { manner ~= "" and manner or "does not say whether it writes" }
    if (approval.annotations or {}).openWorld then
      table.insert(hints, "reaches the outside world")
    end
    add(table.concat(hints, ", "), manner ~= "" and group or "McpAsks")
  end
  if approval.detail ~= "" then
    add("")
    for line in vim.gsplit(approval.detail, "\n") do
      add(line, approval.kind == "trust" and line:match("^runs ") and "McpDanger" or nil)
    end
  end
  if approval.url then
    add("")
    add("opens  " .. approval.url, "McpDanger")
  end
  if type(approval.arguments) == "table" then
    add("")
    add("with", "McpMuted")
    if next(approval.arguments) == nil then
      add("  no arguments")
    end
    local keys = vim.tbl_keys(approval.arguments)
    table.sort(keys)
    for _, key in ipairs(keys) do
      local value = approval.arguments[key]
      if type(value) == "string" and value:find("\n") then
        add("  " .. key .. ":", "McpKey")
        add("    " .. value:gsub("\n", "\n    "))
      else
        add(("  %s: %s"):format(key, (json.pretty(value, "  "))))
        table.insert(marks, { #lines - 1, "McpKey", 1, 4 + #key })
      end
    end
  end
  if approval.diff then
    add("")
    add("what changed", "McpMuted")
    for line in vim.gsplit(approval.diff, "\n") do
      local first = line:sub(1, 1)
      add(line, first == "+" and "McpAdded" or first == "-" and "McpRemoved" or nil)
    end
  end
  return lines, marks
end

---The keys, as they stand at the foot of the window.
function M.footer(approval)
  local chunks = {}
  local function key(name, label)
    table.insert(chunks, { " " .. name, "McpKey" })
    table.insert(chunks, { " " .. label .. " ", "McpMuted" })
  end
  for _, answer in ipairs(M.choices(approval)) do
    if answer.decision == "accept" and approval.schema then
      key("f", "fill in")
    elseif not answer.note then
      key(answer.key, answer.label)
    end
  end
  key("q", "later")
  key("?", "more")
  return chunks
end

return M
