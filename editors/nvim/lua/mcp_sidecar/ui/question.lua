--- A question to the user as text: what is asked, by whom, with what, and which answers it takes. Draws no window.

local json = require("mcp_sidecar.json")
local look = require("mcp_sidecar.ui.look")

local M = {}

---@class mcp_sidecar.Answer
---@field key string
---@field decision string
---@field label string
---@field words string the same in a sentence
---@field note? boolean the user is asked why

---Every answer there is, and its key.
---@type mcp_sidecar.Answer[]
M.answers = {
  { key = "y", decision = "allow-once", label = "once", words = "allow this call, and no other" },
  { key = "s", decision = "allow-session", label = "session", words = "allow it until the session ends" },
  { key = "p", decision = "allow-project", label = "project", words = "allow it in this project from now on" },
  { key = "a", decision = "allow-always", label = "always", words = "allow it everywhere from now on" },
  { key = "y", decision = "accept", label = "accept", words = "say yes" },
  { key = "n", decision = "deny", label = "deny", words = "not this time" },
  { key = "N", decision = "deny", label = "deny with a note", words = "not this time, and say why", note = true },
  { key = "d", decision = "disable", label = "disable", words = "hide the tool from everybody" },
  { key = "n", decision = "decline", label = "decline", words = "give no answer, and say so" },
  { key = "c", decision = "cancel", label = "cancel", words = "call the whole thing off" },
}

---The answers that this question takes.
---@param approval mcp_sidecar.Approval
function M.choices(approval)
  return vim.tbl_filter(function(answer) return vim.tbl_contains(approval.options, answer.decision) end, M.answers)
end

---@alias mcp_sidecar.Add fun(text: string, group?: string, label?: string) a line for each of the text's

---What the tool says that it does. Who asks for it, and which one it is, the title tells.
---@param annotations mcp_sidecar.Annotations
---@param add mcp_sidecar.Add
local function manner(annotations, add)
  local word, group = look.manner(annotations)
  local outside = annotations.openWorld and ", reaches the outside world" or ""
  if word == "" then return add("does not say whether it writes" .. outside, "McpWarn") end
  add(("by its own account it %s%s"):format(word, outside), group)
end

---One argument on each line, then those of several lines in full.
---@param given table<string, any>
---@param add mcp_sidecar.Add
local function arguments(given, add)
  add("\nwith", "McpMuted")
  local names = vim.tbl_keys(given)
  local function long(name) return type(given[name]) == "string" and given[name]:find("\n") ~= nil end
  table.sort(names, function(one, other)
    if long(one) ~= long(other) then return long(other) end
    return one < other
  end)
  if #names == 0 then add("  no arguments") end
  for _, name in ipairs(names) do
    local text = long(name) and "\n    " .. given[name]:gsub("\n", "\n    ") or " " .. json.pretty(given[name], "  ")
    add(text, nil, ("  %s:"):format(name))
  end
end

---@param label string
---@param changes string[]
---@param add mcp_sidecar.Add
local function diff(label, changes, add)
  add("\n" .. label, "McpMuted")
  local groups = { ["+"] = "McpAdded", ["-"] = "McpRemoved", ["@"] = "McpMuted" }
  for _, line in ipairs(changes) do
    -- Where in the file, as a person says it.
    local text = line:gsub("^@@ .*%+(%d+).*@@", "line %1:")
    add(text, groups[line:sub(1, 1)])
  end
end

---@param approval mcp_sidecar.Approval
---@param root? string the workspace that it belongs to
---@return mcp_sidecar.Line[]
function M.draw(approval, root)
  local lines = {}
  local function add(text, group, label)
    local whole = group == "McpAdded" or group == "McpRemoved"
    for line in vim.gsplit(text, "\n") do
      local chunks = { { " " .. (label or ""), "McpKey" }, { line, group } }
      table.insert(lines, whole and { { " " .. line }, group = group } or chunks)
      label = nil
    end
  end
  add(approval.title, "McpTitle")
  if approval.kind == "tool" then manner(approval.annotations or {}, add) end
  local changes, path = require("mcp_sidecar.ui.change").of(approval, root)
  if changes then diff("would change " .. path, changes, add) end
  if approval.arguments then arguments(approval.arguments, add) end
  if approval.detail ~= "" then
    add("")
    for line in vim.gsplit(approval.detail, "\n") do
      -- What a tool says about itself comes last; what would be run is what trust is about.
      add(line, approval.kind == "tool" and "McpMuted" or line:match("^runs ") and "McpError" or nil)
    end
  end
  if approval.url then add("\nopens  " .. approval.url, "McpError") end
  if approval.diff then diff("what changed", vim.split(approval.diff, "\n"), add) end
  return lines
end

---The keys, as they stand at the foot of the window; where it is narrow, not those between yes and no.
---@param approval mcp_sidecar.Approval
---@param width integer
---@return mcp_sidecar.Chunk[]
function M.footer(approval, width)
  local keys = {}
  for place, answer in ipairs(M.choices(approval)) do
    if answer.decision == "accept" and approval.schema then
      table.insert(keys, { "f", "fill in", true })
    elseif not answer.note then
      table.insert(keys, { answer.key, answer.label, place == 1 or answer.key == "n" })
    end
  end
  vim.list_extend(keys, { { "q", "later", true }, { "?", "more", true } })
  local room = vim.iter(keys):fold(0, function(sum, key) return sum + #key[1] + #key[2] + 3 end)
  local chunks = {}
  for _, key in ipairs(keys) do
    if key[3] or room <= width then
      vim.list_extend(chunks, { { " " .. key[1], "McpKey" }, { " " .. key[2] .. " ", "McpMuted" } })
    end
  end
  return chunks
end

return M
