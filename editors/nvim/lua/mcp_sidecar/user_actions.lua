--- What the user started in this Neovim a moment ago. Only a question about one of these actions may take the focus.

local client = require("mcp_sidecar.client")

local M = {}

-- The user no longer waits for a question that comes later than this.
local EXPECTED_MS = 5000

---@class mcp_sidecar.Moment
---@field time integer
---@field keys integer number of keys that were typed before

---@class mcp_sidecar.UserAction
---@field server string
---@field tool? string the tool that is called; nil: the server is started
---@field arguments? table<string, any>
---@field client_id? integer
---@field moment mcp_sidecar.Moment

local typed_keys = 0
---@type table<mcp_sidecar.UserAction, true?>
local actions = {}

-- `typed` is empty for keys that come from a mapping, a macro or `feedkeys()`.
vim.on_key(function(_, typed)
  if typed ~= "" then typed_keys = typed_keys + 1 end
end, vim.api.nvim_create_namespace("mcp_sidecar_user_actions"))

---@return mcp_sidecar.Moment
function M.now() return { time = vim.uv.now(), keys = typed_keys } end

---Whether the user still waits for the outcome: a moment ago, and no key was typed since.
---@param moment mcp_sidecar.Moment
function M.is_recent(moment) return moment.keys == typed_keys and vim.uv.now() - moment.time < EXPECTED_MS end

---@param action { server: string, tool?: string, arguments?: table }
---@param moment? mcp_sidecar.Moment when the user started it; nil: now
---@return fun() finish no question about this action is expected any more
function M.add(action, moment)
  for old in pairs(actions) do
    if not M.is_recent(old.moment) then actions[old] = nil end
  end
  local current = client.current()
  local known = { moment = moment or M.now(), client_id = current and current.id }
  local added = vim.tbl_extend("error", action, known) --[[@as mcp_sidecar.UserAction]]
  actions[added] = true
  return function() actions[added] = nil end
end

---Whether a question is about something that the user has just started here.
---@param approval mcp_sidecar.Question
function M.caused(approval)
  return vim.iter(pairs(actions)):any(function(action)
    if not M.is_recent(action.moment) or action.server ~= approval.server then return false end
    if action.client_id and action.client_id ~= approval.client_id then return false end
    if not action.tool then return approval.kind == "trust" or approval.kind == "input" end
    return approval.kind == "tool"
      and approval.requester.kind == "user"
      and action.tool == approval.tool
      and vim.deep_equal(action.arguments or {}, approval.arguments or {})
  end)
end

---Whether the user is at rest in normal mode, in a window of their own.
function M.is_at_rest()
  local mode = vim.api.nvim_get_mode()
  return mode.mode == "n"
    and not mode.blocking
    and vim.fn.getcmdwintype() == ""
    and vim.fn.reg_recording() == ""
    and vim.fn.reg_executing() == ""
    and vim.api.nvim_win_get_config(0).relative == ""
end

return M
