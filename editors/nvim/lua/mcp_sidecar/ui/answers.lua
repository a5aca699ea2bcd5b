--- Turns keys into answers to questions, and sends them. Only a deliberate key counts: keys are ignored for a moment after a
--- question appears, changes or is focused, and an answer that lasts or grants several things needs two keys.

local client = require("mcp_sidecar.client")
local question = require("mcp_sidecar.ui.question")

local M = {}

-- Keys that were meant for something else arrive within this time; each of them starts it again.
local DEAD_MS = 400
-- The first key of an answer that takes two is forgotten after this time.
local FIRST_KEY_MS = 3000

M.armed = 0 -- when the keys start to work
M.given = {} ---@type table<string, true?> answered here, until the sidecar no longer lists it
M.marked = {} ---@type table<string, true?> the marked questions of groups

---@type fun()
local redraw
---@type { id: string, key: string }? the first key of an answer that takes two
local first

---@param draw fun() shows when keys work, and which
function M.attach(draw) redraw = draw end

---Makes the keys dead for a moment, and shows when they work again.
function M.arm()
  M.armed, first = vim.uv.now() + DEAD_MS, nil
  vim.defer_fn(function()
    if not M.is_dead() then redraw() end
  end, DEAD_MS + 1)
end

function M.is_dead() return vim.uv.now() < M.armed end

---The questions that an answer to this one is about: those of a group that are marked, or all of them.
---@param asked mcp_sidecar.Question
---@return string[] ids, boolean marked
function M.targets(asked)
  local ids, marked = {}, {}
  for _, each in ipairs(asked.members or { asked }) do
    table.insert(ids, each.id)
    if asked.members and M.marked[each.id] then table.insert(marked, each.id) end
  end
  return #marked > 0 and marked or ids, #marked > 0
end

---Whether everything that it asks was answered here.
---@param asked mcp_sidecar.Question
function M.is_given(asked)
  return vim.iter(asked.members or { asked }):all(function(each) return M.given[each.id] ~= nil end)
end

---@class mcp_sidecar.GivenAnswer
---@field choice mcp_sidecar.Answer
---@field ids string[] the questions that it answers

---@param asked mcp_sidecar.Question
---@param given mcp_sidecar.GivenAnswer
---@param extra? { note?: string, content?: table, arguments?: table }
---@param done? fun(err?: mcp_sidecar.Error)
function M.send(asked, given, extra, done)
  local ids = given.ids
  local params = vim.tbl_extend("error", { decision = given.choice.answer.decision }, extra or {})
  params.id, params.ids = not asked.members and asked.id or nil, asked.members and ids
  local function set_given(value)
    vim.iter(ids):each(function(id) M.given[id] = value end)
  end
  set_given(true)
  client.command("mcp.approval.resolve", params, function(err, result)
    if err then set_given(nil) end
    if done then return done(err) end
    if err then return client.error(err) end
    local answer = given.choice.answer
    local text = question.confirmation(asked.members and result or answer, answer.grants)
    if text then client.info(text) end
    local gone = asked.members and #result.gone or 0
    if gone > 0 then client.warn(("%d of these questions had already ended"):format(gone)) end
  end, { client = vim.lsp.get_client_by_id(asked.client_id) })
end

---The first key that was pressed for this question, or for any.
---@param asked? mcp_sidecar.Question
---@return string?
function M.first_key(asked)
  if first and (not asked or first.id == asked.id) then return first.key end
end

function M.forget_first_key() first = nil end

---@param asked mcp_sidecar.Question
local function wait_for_second_key(asked, key)
  local pressed = { id = asked.id, key = key }
  first = pressed
  redraw()
  vim.defer_fn(function()
    if first == pressed then
      first = nil
      redraw()
    end
  end, FIRST_KEY_MS)
end

---The answer of a key, if the question takes it and the key can be deliberate.
---@param asked mcp_sidecar.Question
---@return mcp_sidecar.GivenAnswer?
function M.press(key, asked)
  if M.is_given(asked) or M.is_dead() or vim.fn.reg_executing() ~= "" then return end
  local before = M.first_key(asked) or ""
  first = nil
  local ids, marked = M.targets(asked)
  local choices = question.choices(asked, marked)
  -- `f` is another key for the answer that has a form.
  local wanted = before .. (asked.form and key == "f" and "y" or key)
  local choice = vim.iter(choices):find(function(each) return each.keys == wanted end)
  local longer = vim.iter(choices):any(function(each) return each.keys:match("^(.).") == wanted end)
  if choice then return { choice = choice, ids = ids } end
  if longer then return wait_for_second_key(asked, key) end
  redraw()
end

---Removes what is known about questions that no longer wait.
---@param waits fun(id: string): boolean
function M.forget(waits)
  for _, known in ipairs({ M.given, M.marked }) do
    for id in pairs(known) do
      if not waits(id) then known[id] = nil end
    end
  end
end

return M
