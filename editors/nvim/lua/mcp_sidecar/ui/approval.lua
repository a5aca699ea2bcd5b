--- Shows the questions that wait for the user, oldest first, and sends the answers back.
---
--- Only a deliberate answer counts. A question that the user did not cause never takes the focus; the keys of the prompt
--- are dead for a moment after it appears, changes or is focused; an answer that lasts takes two keys; there is no
--- default answer, and hiding the prompt is not an answer.

local client = require("mcp_sidecar.client")
local config = require("mcp_sidecar.config")
local frame = require("mcp_sidecar.ui.frame")
local workspaces = require("mcp_sidecar.workspaces")
local placement = require("mcp_sidecar.ui.placement")
local question = require("mcp_sidecar.ui.question")
local trust_question = require("mcp_sidecar.ui.trust_question")
local user_actions = require("mcp_sidecar.user_actions")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

-- Keys that were meant for something else arrive within this time; each of them starts it again.
local DEAD_MS = 400
-- The first key of an answer that takes two is forgotten after this time.
local FIRST_KEY_MS = 3000

local prompt = {
  window = nil, ---@type integer?
  buffer = nil, ---@type integer?
  shown = nil, ---@type string? the id of the question
  drawn = nil, ---@type mcp_sidecar.ClientApproval?
  replaced = false, -- the question before it was shown to a user who had the focus here
  armed = 0, -- when the keys start to work
  first = nil, ---@type { id: string, key: string }? the first key of an answer that takes two
  seen = {}, ---@type table<string, true?>
  hidden = {}, ---@type table<string, true?> left for later, or shown in a tab page
  queue = nil, ---@type table<string, true?>? what waited when the user came here to answer
}
---@type table<string, true?> answered here, until the sidecar no longer lists it
local answered = {}
---@type mcp_sidecar.ClientApproval? a question of this plugin: whether to trust a definition that the sidecar does not ask about
local own

---@type fun(), fun()
local redraw, refresh

-- What waits ----------------------------------------------------------------------------------------------------------

---@return mcp_sidecar.ClientApproval[]
local function waiting() return vim.list_extend(own and { own } or {}, workspaces.approvals()) end

---@param id? string
---@return mcp_sidecar.ClientApproval?
local function find(id)
  return vim.iter(waiting()):find(function(approval) return approval.id == id end)
end

---@return table<string, true?>
local function waiting_ids()
  return vim.iter(waiting()):fold({}, function(ids, approval)
    ids[approval.id] = true
    return ids
  end)
end

---The window of the prompt, while there is one.
---@return integer?
local function window()
  if prompt.window and vim.api.nvim_win_is_valid(prompt.window) then return prompt.window end
end

---@return boolean
local function is_focused() return vim.api.nvim_get_current_win() == window() end

local function close_window()
  local open = window()
  prompt.window = nil
  if open then vim.api.nvim_win_close(open, true) end
end

local function close()
  -- First, because closing the window triggers autocommands that draw what is shown.
  prompt.shown, prompt.drawn, prompt.first = nil, nil, nil
  close_window()
end

---Makes the keys dead for a moment, and shows when they work again.
local function arm()
  prompt.armed, prompt.first = vim.uv.now() + DEAD_MS, nil
  vim.defer_fn(function()
    if vim.uv.now() >= prompt.armed then redraw() end
  end, DEAD_MS + 1)
end

-- Answers -----------------------------------------------------------------------------------------------------------

---@param approval mcp_sidecar.ClientApproval
---@param answer { decision: string, done?: string }
---@param extra? { note?: string, content?: table }
---@param done? fun(err?: mcp_sidecar.Error)
local function send(approval, answer, extra, done)
  answered[approval.id] = true
  prompt.queue = prompt.queue and waiting_ids()
  if approval == own then
    own = nil
    vim.schedule(refresh)
    return trust_question.answer(approval, answer --[[@as mcp_sidecar.Answer]])
  end
  local params = vim.tbl_extend("force", { id = approval.id, decision = answer.decision }, extra or {})
  client.command("mcp.approval.resolve", params, function(err)
    if err then answered[approval.id] = nil end
    if done then return done(err) end
    if err then return client.error(err) end
    local text = question.confirmation(approval, answer --[[@as mcp_sidecar.Answer]])
    if text then client.info(text) end
  end, { client = vim.lsp.get_client_by_id(approval.client_id) })
end

---@param approval mcp_sidecar.ClientApproval
local function fill(approval)
  require("mcp_sidecar.ui.answer_form").open(
    approval,
    function(content, done) send(approval, { decision = "accept" }, { content = content }, done) end,
    function()
      prompt.hidden[approval.id] = true
      close()
    end
  )
end

---@param approval mcp_sidecar.ClientApproval
---@param key string
local function wait_for_second_key(approval, key)
  local first = { id = approval.id, key = key }
  prompt.first = first
  redraw()
  vim.defer_fn(function()
    if prompt.first == first then
      prompt.first = nil
      redraw()
    end
  end, FIRST_KEY_MS)
end

---Sends the answer of a key, if the question takes it and the key can be deliberate.
---@param key string
---@param approval? mcp_sidecar.ClientApproval
local function press(key, approval)
  if not approval or answered[approval.id] or vim.uv.now() < prompt.armed or vim.fn.reg_executing() ~= "" then
    return
  end
  local first = prompt.first and prompt.first.id == approval.id and prompt.first.key or ""
  prompt.first = nil
  local choices = question.choices(approval)
  local answer = vim.iter(choices):find(function(choice) return choice.keys == first .. key end)
  local is_accept = answer and answer.decision == "accept" or (first == "" and key == "f")
  if approval.schema and is_accept then return fill(approval) end
  if not answer then
    local longer = vim.iter(choices):any(function(choice) return choice.keys:match("^(.).") == first .. key end)
    if longer then return wait_for_second_key(approval, key) end
    return redraw()
  end
  arm()
  if not answer.note then return send(approval, answer) end
  vim.ui.input({ prompt = "Why not? " }, function(note)
    if note then send(approval, answer, { note = note ~= "" and note or nil }) end
  end)
end

-- Windows -----------------------------------------------------------------------------------------------------------

local answer_keys = { y = true, n = true, N = true, c = true, f = true, a = true, s = true, p = true, d = true }

---A buffer for a question. Keys that start an edit elsewhere do nothing here.
---@param name string
---@param asked fun(): mcp_sidecar.ClientApproval? the question that this buffer shows
local function make_buffer(name, asked)
  local buffer = windows.buffer("mcp-approval://" .. name, "mcp-approval")
  for key in pairs(answer_keys) do
    windows.map(buffer, "n", key, function() press(key, asked()) end, "answer")
  end
  for _, key in ipairs({ "<CR>", "<Space>", "o", "i", "I", "A", "O", "x", "u", "r", "R", "C", "D", "S", "X", "P", "J" }) do
    windows.map(buffer, "n", key, "<Nop>", "nothing")
  end
  local function help()
    local approval = asked()
    if approval then windows.peek(question.help(approval), "answers") end
  end
  windows.map(buffer, "n", "?", help, "help")
  windows.map(buffer, "n", "g?", help, "help")
  return buffer
end

---Hides the prompt. Every question keeps waiting.
function M.later()
  if not window() then return client.info("no question is shown") end
  prompt.hidden, own = waiting_ids(), nil
  close()
end

local function escape()
  if not prompt.first then return M.later() end
  prompt.first = nil
  redraw()
end

---@param approval mcp_sidecar.ClientApproval
---@return string
local function winbar(approval)
  local first = prompt.first and prompt.first.id == approval.id and prompt.first.key or nil
  return windows.winbar({ { " " .. approval.title, "McpTitle" } }, question.hints(approval, first))
end

---Opens the question in a tab page, where the same keys answer it.
local function open_in_full()
  local approval = find(prompt.shown)
  if not approval then return end
  prompt.hidden[approval.id] = true
  close()
  local buffer = make_buffer(approval.id, function() return find(approval.id) end)
  windows.paint(buffer, question.draw(approval))
  windows.show(buffer, { mods = { tab = 0 }, wrap = true, winbar = winbar(approval) })
  arm()
end

---@return integer
local function prompt_buffer()
  if prompt.buffer and vim.api.nvim_buf_is_valid(prompt.buffer) then return prompt.buffer end
  local buffer = make_buffer("waiting", function() return find(prompt.shown) end)
  vim.bo[buffer].bufhidden = "hide"
  windows.map(buffer, "n", "q", M.later, "later")
  windows.map(buffer, "n", "<Esc>", escape, "back, or later")
  windows.map(buffer, "n", "v", open_in_full, "open in a tab page")
  prompt.buffer = buffer
  return buffer
end

---Draws the prompt with a question; `enter` focuses it.
---@param approval mcp_sidecar.ClientApproval
---@param enter boolean
local function show(approval, enter)
  local buffer, another, open = prompt_buffer(), not vim.deep_equal(prompt.drawn, approval), window()
  local focused = enter or is_focused()
  if another then
    prompt.replaced = is_focused()
    windows.paint(buffer, question.draw(approval))
  end
  prompt.shown, prompt.drawn = approval.id, approval
  if another or (enter and not is_focused()) then arm() end
  local height = windows.height(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), placement.width())
  local float, cut = placement.place(height, focused)
  if not float then return close_window() end
  local opts = { focused = focused, replaced = prompt.replaced, more = #waiting() - 1, cut = cut }
  opts.dead, opts.first = vim.uv.now() < prompt.armed, prompt.first and prompt.first.key
  float = vim.tbl_extend("error", float, frame.of(approval, opts, placement.width()))
  if open then
    if another then vim.api.nvim_win_set_cursor(open, { 1, 0 }) end
    vim.api.nvim_win_set_config(open, float)
  end
  open = open or windows.float(buffer, false, "McpMuted", float)
  prompt.window = open
  vim.wo[open].winhighlight = ("NormalFloat:Normal,FloatBorder:%s"):format(focused and "McpWarn" or "McpMuted")
  if enter then
    vim.cmd.stopinsert()
    vim.api.nvim_set_current_win(open)
  end
end

function redraw()
  local approval = find(prompt.shown)
  if approval then show(approval, false) end
  for id in pairs(prompt.hidden) do
    local full, hidden = windows.window_of("mcp-approval://" .. id), find(id)
    if full and hidden then vim.wo[full].winbar = winbar(hidden) end
  end
end

---Marks all questions as seen.
---@return mcp_sidecar.ClientApproval? expected a new one about something that the user has just started here
local function take_new()
  local expected
  for _, approval in ipairs(waiting()) do
    if not prompt.seen[approval.id] and user_actions.caused(approval) then expected = expected or approval end
  end
  prompt.seen = waiting_ids()
  return expected
end

---Draws what waits now; closes the prompt, and tab pages, when what they show was answered.
function refresh()
  local function over(id)
    if not answered[id] then client.info("the question was answered elsewhere or withdrawn") end
  end
  local before = prompt.shown
  if before and not find(before) then over(before) end
  for id in pairs(prompt.hidden) do
    local waits = find(id) ~= nil
    prompt.hidden[id] = waits or nil
    local full = not waits and (windows.find("mcp-answer://" .. id) or windows.find("mcp-approval://" .. id))
    if full then
      vim.api.nvim_buf_delete(full, { force = true })
      over(id)
    end
  end
  for id in pairs(answered) do
    answered[id] = find(id) and true or nil
  end
  local expected = take_new()
  if expected and config.get().auto_focus and user_actions.is_at_rest() then
    prompt.queue = nil
    return show(expected, true)
  end
  local function is_new(approval) return not prompt.hidden[approval.id] and not answered[approval.id] end
  local next_one = find(before) or vim.iter(waiting()):find(is_new)
  local expects_next = next_one and (next_one.id == before or (prompt.queue or {})[next_one.id])
  -- The user came to answer other questions: this one gets no key before they come again.
  if not next_one or (is_focused() and not expects_next) then close() end
  if next_one then show(next_one, false) end
end

---Focuses the oldest question, or this one.
---@param id? string
function M.focus(id)
  prompt.hidden, prompt.queue = {}, waiting_ids()
  local found = find(id) or (not id and waiting()[1])
  if not found then return client.info("no question waits for an answer") end
  if vim.fn.getcmdwintype() ~= "" then return client.warn("close the command-line window first") end
  show(found, true)
end

---Denies the question that is shown, this time only.
function M.deny()
  local approval = window() and find(prompt.shown)
  if not approval then return client.info("no question is shown") end
  if vim.uv.now() < prompt.armed then return client.warn("not denied: the question has just appeared") end
  local answer = vim.iter(question.choices(approval)):find(function(choice) return choice.keys == "n" end)
  if not answer or approval.kind ~= "tool" then return M.focus(approval.id) end
  send(approval, answer)
  client.info(("denied `%s/%s` once"):format(approval.server, approval.tool))
end

---Trusts the definition of a server after showing it, or withdraws the trust.
---@param server string
---@param trusted? boolean false: withdraw it
function M.trust(server, trusted)
  if trusted == false then return client.command("mcp.server.trust", { server = server, trusted = false }) end
  for _, approval in ipairs(workspaces.approvals()) do
    if approval.kind == "trust" and approval.server == server then return M.focus(approval.id) end
  end
  local moment = user_actions.now()
  trust_question.ask(server, function(approval)
    own = approval
    prompt.seen[own.id], prompt.shown, prompt.drawn = nil, nil, nil
    user_actions.add({ server = server, client_id = own.client_id }, moment)
    refresh()
  end)
end

client.on("approvals", vim.schedule_wrap(refresh))
client.on("exit", refresh)

vim.on_key(function(_, typed)
  if typed == "" or vim.bo.filetype ~= "mcp-approval" then return end
  if vim.uv.now() < prompt.armed then arm() end
  if prompt.first and not answer_keys[typed] then
    prompt.first = typed == vim.keycode("<Esc>") and prompt.first or nil
    vim.schedule(redraw)
  end
end, vim.api.nvim_create_namespace("mcp_sidecar_approval"))

local group = vim.api.nvim_create_augroup("mcp_sidecar_approval", {})
local function on(events, run) vim.api.nvim_create_autocmd(events, { group = group, callback = run }) end

-- A float belongs to one tab page: the question follows the user to the current one.
on({ "VimResized", "TabEnter" }, function()
  local open = window()
  if open and vim.api.nvim_win_get_tabpage(open) ~= vim.api.nvim_get_current_tabpage() then close_window() end
  if prompt.shown then refresh() end
end)
-- `:q` in the prompt hides it; after `:only` in another window it appears again.
on("WinClosed", function(event)
  if tonumber(event.match) == prompt.window and is_focused() then
    prompt.hidden, prompt.shown = waiting_ids(), nil
  end
end)
on({ "WinEnter", "WinLeave" }, function()
  if vim.bo.filetype ~= "mcp-approval" then return end
  arm()
  vim.schedule(redraw)
end)
on({ "CursorMoved", "CursorMovedI", "TextChangedT", "WinScrolled", "WinEnter" }, function()
  local open = window()
  if is_focused() or not prompt.shown then return end
  if not open or placement.covers_cursor(vim.api.nvim_win_get_config(open)) then redraw() end
end)

---For tests: what is on the screen.
function M.state() return prompt end

return M
