--- Shows the questions that wait for the user, oldest first, and sends the answers back.
---
--- Consent must be meant: the prompt never takes the focus from somebody who types, its keys are dead for a moment
--- after it appears or changes, there is no default answer, and hiding it is not one.

local client = require("mcp_sidecar.client")
local config = require("mcp_sidecar.config")
local json = require("mcp_sidecar.json")
local look = require("mcp_sidecar.ui.look")
local pictures = require("mcp_sidecar.pictures")
local question = require("mcp_sidecar.ui.question")

local M = {}

-- Keys that were meant for something else arrive within this time.
local DEAD_MS = 400
-- Somebody whose last key is younger than this is typing.
local TYPING_MS = 1000

local prompt = {
  window = nil, ---@type integer?
  buffer = nil, ---@type integer?
  shown = nil, ---@type string? the id of the question
  armed = 0,
  hidden = {}, ---@type table<string, boolean?> left for later, or shown in a window of its own
  last_key = vim.uv.now(),
}
---@type table<string, boolean?> what was answered here, until the sidecar lists it no more
local answered = {}

vim.on_key(function() prompt.last_key = vim.uv.now() end, vim.api.nvim_create_namespace("mcp_sidecar_approval"))

---The window of the prompt, while there is one.
---@return integer?
local function window()
  if prompt.window and vim.api.nvim_win_is_valid(prompt.window) then return prompt.window end
end

---@param id? string
---@return mcp_sidecar.Approval?
local function find(id)
  return vim.iter(pictures.approvals()):find(function(approval) return approval.id == id end)
end

local function close()
  local open = window()
  if open then vim.api.nvim_win_close(open, true) end
  prompt.window, prompt.shown = nil, nil
end

local function arm() prompt.armed = vim.uv.now() + DEAD_MS end

-- Answers -----------------------------------------------------------------------------------------------------------

---@param approval mcp_sidecar.Approval
---@param decision string
---@param extra? { note?: string, content?: table }
---@param done? fun(err?: mcp_sidecar.Error)
local function send(approval, decision, extra, done)
  answered[approval.id] = true
  local params = vim.tbl_extend("force", { id = approval.id, decision = decision }, extra or {})
  client.command("mcp.approval.resolve", params, function(err)
    if err then answered[approval.id] = nil end
    if done then return done(err) end
    client.complain(err)
  end, { client = vim.lsp.get_client_by_id(approval.client_id) })
end

---@param approval mcp_sidecar.Approval
local function fill(approval)
  require("mcp_sidecar.ui.fill").open(
    approval,
    function(content, done) send(approval, "accept", { content = content }, done) end,
    function()
      prompt.hidden[approval.id] = true
      close()
    end
  )
end

---Sends the answer that a key stands for, if this question takes it and it can have been meant.
---@param key string
---@param approval? mcp_sidecar.Approval
local function press(key, approval)
  if not approval or vim.uv.now() < prompt.armed then return end
  local answer = vim.iter(question.choices(approval)):find(function(choice) return choice.key == key end)
  if approval.schema and (key == "f" or (answer and answer.decision == "accept")) then return fill(approval) end
  if not answer then return end
  arm()
  if not answer.note then return send(approval, answer.decision) end
  vim.ui.input({ prompt = "Why not? " }, function(note)
    if note then send(approval, answer.decision, { note = note ~= "" and note or nil }) end
  end)
end

-- Windows -----------------------------------------------------------------------------------------------------------

---A buffer for a question: its keys answer, and what other windows answer to is deaf.
---@param name string
---@param asked fun(): mcp_sidecar.Approval? the question that this buffer shows
local function make_buffer(name, asked)
  local buffer = look.buffer("mcp-approval://" .. name, "mcp-approval")
  for _, key in ipairs({ "y", "s", "p", "a", "n", "N", "d", "c", "f" }) do
    look.map(buffer, "n", key, function() press(key, asked()) end, "answer")
  end
  for _, key in ipairs({ "<CR>", "<Space>", "o", "i", "I", "A", "O", "x", "u" }) do
    look.map(buffer, "n", key, "<Nop>", "nothing")
  end
  local function help()
    local approval, lines = asked(), {}
    for _, answer in ipairs(approval and question.choices(approval) or {}) do
      table.insert(lines, ("`%s`  %s"):format(answer.key, answer.words))
    end
    if approval and approval.schema then table.insert(lines, "`f`  fill in what is asked for") end
    look.peek(vim.list_extend(lines, { "`v`  show it in a whole window", "`q`  later: it goes on waiting" }), "answers")
  end
  look.map(buffer, "n", "?", help, "help")
  look.map(buffer, "n", "g?", help, "help")
  return buffer
end

---@param buffer integer
---@param approval mcp_sidecar.Approval
local function paint(buffer, approval)
  local picture = pictures.all[approval.client_id]
  look.paint(buffer, question.draw(approval, picture and picture.root))
end

local function hide()
  for _, approval in ipairs(pictures.approvals()) do
    prompt.hidden[approval.id] = true
  end
  close()
end

---The question in a tab page of its own, where it is answered by the same keys.
local function open_in_full()
  local approval = find(prompt.shown)
  if not approval then return end
  prompt.hidden[approval.id] = true
  close()
  local buffer = make_buffer(approval.id, function() return find(approval.id) end)
  paint(buffer, approval)
  local bar = look.winbar({ { " " .. approval.title, "McpTitle" } }, { { "?", "answers" }, { "q", "later" } })
  look.show(buffer, { mods = { tab = 0 }, wrap = true, winbar = bar })
  arm()
end

---@return integer
local function prompt_buffer()
  if prompt.buffer and vim.api.nvim_buf_is_valid(prompt.buffer) then return prompt.buffer end
  local buffer = make_buffer("waiting", function() return find(prompt.shown) end)
  vim.bo[buffer].bufhidden = "hide"
  look.map(buffer, "n", "q", hide, "later")
  look.map(buffer, "n", "<Esc>", hide, "later")
  look.map(buffer, "n", "v", open_in_full, "in a whole window")
  prompt.buffer = buffer
  return buffer
end

---Whether a question may take the focus now: only from somebody who is not in the middle of something.
---@return boolean
local function may_take_focus()
  return config.get().auto_focus ~= false
    and vim.api.nvim_get_mode().mode == "n"
    and vim.fn.getcmdwintype() == ""
    and vim.api.nvim_win_get_config(0).relative == ""
    and vim.uv.now() - prompt.last_key > TYPING_MS
end

---At the bottom, but never over the line that somebody types in.
---@param lines string[]
---@param focus boolean
---@return vim.api.keyset.win_config float, boolean cut whether some lines do not fit
local function geometry(lines, focus)
  local width = math.min(100, vim.o.columns - 4)
  local height = look.height(lines, width)
  local cursor = vim.fn.screenpos(0, vim.fn.line("."), vim.fn.col(".")).row
  local typing = not focus and vim.api.nvim_get_current_win() ~= prompt.window and cursor > 0
  local above, below = cursor - 4, vim.o.lines - cursor - 5
  local room = vim.o.lines - 6
  if typing then room = math.min(room, math.max(4, above, below)) end
  local shown = math.max(3, math.min(height, room))
  local on_top = typing and shown > below and above > below
  return {
    relative = "editor",
    width = width,
    height = shown,
    row = on_top and 0 or vim.o.lines - shown - 4,
    col = math.max(0, math.floor((vim.o.columns - width) / 2) - 1),
    zindex = 200,
  },
    height > shown
end

---@param approval mcp_sidecar.Approval
---@param focus boolean
local function show(approval, focus)
  local buffer, waiting = prompt_buffer(), #pictures.approvals()
  paint(buffer, approval)
  local float, cut = geometry(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), focus)
  local title = { ({ tool = "approval", trust = "trust" })[approval.kind] or "question" }
  if waiting > 1 then table.insert(title, ("%d more wait"):format(waiting - 1)) end
  local entered = focus or vim.api.nvim_get_current_win() == prompt.window
  if not entered then table.insert(title, ":Mcp approve goes here") end
  if cut and entered then table.insert(title, "scroll to see all, v for a whole window") end
  float.title = " " .. table.concat(title, " · ") .. " "
  float.footer = question.footer(approval, float.width or 0)
  local another, open = prompt.shown ~= approval.id, window()
  if another or not open then arm() end
  if open then
    if another then vim.api.nvim_win_set_cursor(open, { 1, 0 }) end
    vim.api.nvim_win_set_config(open, float)
  end
  prompt.window, prompt.shown = open or look.float(buffer, false, "McpWarn", float), approval.id
  if focus then vim.api.nvim_set_current_win(prompt.window) end
end

---Draws what waits now; closes the prompt, and windows of their own, when what they show has been answered.
local function refresh()
  local function over(id)
    if not answered[id] then client.say("answered elsewhere, or no longer asked") end
  end
  if prompt.shown and not find(prompt.shown) then
    over(prompt.shown)
    prompt.shown = nil
  end
  for id in pairs(prompt.hidden) do
    local waits = find(id) ~= nil
    prompt.hidden[id] = waits or nil
    local own = not waits and (look.find("mcp-answer://" .. id) or look.find("mcp-approval://" .. id))
    if own then
      vim.api.nvim_buf_delete(own, { force = true })
      over(id)
    end
  end
  local function is_new(approval) return not prompt.hidden[approval.id] and not answered[approval.id] end
  local next_one = find(prompt.shown) or vim.iter(pictures.approvals()):find(is_new)
  if not next_one then return close() end
  show(next_one, window() == nil and may_take_focus())
end

---Puts the focus on the oldest question, or on one in particular.
---@param id? string
function M.focus(id)
  prompt.hidden = {}
  local found = find(id) or (not id and pictures.approvals()[1])
  if not found then return client.say("nothing waits for an answer") end
  show(found, true)
  arm()
end

---Trust is given in sight of what will run: by the prompt, where one waits.
---@param server string
---@param trusted? boolean false: withdraw it
function M.trust(server, trusted)
  local function answer(yes) client.command("mcp.server.trust", { server = server, trusted = yes }) end
  if trusted == false then return answer(false) end
  for _, approval in ipairs(pictures.approvals()) do
    if approval.kind == "trust" and approval.server == server then return M.focus(approval.id) end
  end
  client.fetch("mcp.servers", { server = server }, function(result)
    local status = result.servers[1]
    if not status then return client.complain(("no server named `%s`"):format(server)) end
    local shown = status.trustDiff and (status.trustDiff .. "\n") or ""
    local text = ("%s%s\n\nTrust this definition of %s?"):format(shown, json.pretty(status.config), server)
    if vim.fn.confirm(text, "&Trust\n&No", 2) == 1 then answer(true) end
  end)
end

client.on("approvals", vim.schedule_wrap(refresh))
client.on("exit", refresh)

local group = vim.api.nvim_create_augroup("mcp_sidecar_approval", {})
-- A float belongs to one tab page: the question goes along to the one that is looked at.
vim.api.nvim_create_autocmd({ "VimResized", "TabEnter" }, {
  group = group,
  callback = function()
    local open = window()
    if not open then return end
    if vim.api.nvim_win_get_tabpage(open) ~= vim.api.nvim_get_current_tabpage() then
      vim.api.nvim_win_close(open, true)
    end
    refresh()
  end,
})
vim.api.nvim_create_autocmd("WinEnter", {
  group = group,
  callback = function()
    if vim.api.nvim_get_current_win() == prompt.window then arm() end
  end,
})

---For tests: what is on the screen.
function M.state() return prompt end

return M
