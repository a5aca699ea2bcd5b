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
-- More fields than this are a form.
local FEW = 2

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_approval")
local prompt = { window = nil, buffer = nil, shown = nil, armed = 0, hidden = {}, last_key = vim.uv.now() }
---@type table<string, boolean> what was answered here, until the sidecar lists it no more
local answered = {}

vim.on_key(function() prompt.last_key = vim.uv.now() end, namespace)

local function is_open() return prompt.window ~= nil and vim.api.nvim_win_is_valid(prompt.window) end

---@param id? string
---@return mcp_sidecar.Approval?
local function find(id)
  return vim.iter(pictures.approvals()):find(function(approval) return approval.id == id end)
end

local function close()
  if is_open() then vim.api.nvim_win_close(prompt.window, true) end
  prompt.window, prompt.shown = nil, nil
end

local function arm() prompt.armed = vim.uv.now() + DEAD_MS end

---@param approval mcp_sidecar.Approval
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

---What a server asks for as a form in a window. Closing it answers nothing.
---@param approval mcp_sidecar.Approval
local function open_form(approval)
  prompt.hidden[approval.id] = true
  close()
  local name = "mcp-answer://" .. approval.id
  require("mcp_sidecar.ui.form").open({
    name = name,
    schema = approval.schema,
    title = { { " " .. approval.title, "McpTitle" } },
    note = look.fit(approval.detail, 60),
    verb = "send",
    origin = (require("mcp_sidecar.ui.call").origin()),
    about = function() look.peek(vim.split(approval.detail, "\n"), approval.title) end,
    send = function(content, report)
      send(approval, "accept", { content = content }, function(err)
        if not report.done(err) then client.complain(err) end
        local window = vim.fn.bufwinid(look.find(name) or -1)
        if not err and window ~= -1 then vim.api.nvim_win_close(window, true) end
      end)
    end,
  }, {})
end

---Asks for what a server wants to know: a few fields one after another, more of them in a form.
---@param approval mcp_sidecar.Approval
local function fill(approval)
  local fields = require("mcp_sidecar.ui.fields")
  if #fields.order(approval.schema) > FEW and not fields.is_secret(approval.schema) then return open_form(approval) end
  fields.ask(approval.schema, function(content)
    if content then send(approval, "accept", { content = next(content) and content or vim.empty_dict() }) end
  end)
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

---Maps the answers, and makes deaf what other windows answer to.
---@param buffer integer
---@param asked fun(): mcp_sidecar.Approval? the question that this buffer shows
local function map_answers(buffer, asked)
  for _, key in ipairs({ "y", "s", "p", "a", "n", "N", "d", "c", "f" }) do
    look.map(buffer, "n", key, function() press(key, asked()) end, "answer")
  end
  for _, key in ipairs({ "<CR>", "<Space>", "o", "i", "I", "A", "O", "x", "u" }) do
    look.map(buffer, "n", key, "<Nop>", "nothing")
  end
  local function help()
    local lines = {}
    for _, answer in ipairs(question.choices(asked() or { options = {} })) do
      table.insert(lines, ("`%s`  %s"):format(answer.key, answer.label))
    end
    local more = { "`f`  fill in the form", "`v`  in a whole window", "`q`  later: the question goes on waiting" }
    look.peek(vim.list_extend(lines, more), "answers")
  end
  look.map(buffer, "n", "?", help, "help")
  look.map(buffer, "n", "g?", help, "help")
end

local function hide()
  for _, approval in ipairs(pictures.approvals()) do
    prompt.hidden[approval.id] = true
  end
  close()
end

---@param approval mcp_sidecar.Approval
local function draw(approval)
  local picture = pictures.all[approval.client_id]
  return question.draw(approval, picture and picture.root)
end

---The question in a tab page of its own, where it is answered by the same keys.
local function open_in_full()
  local approval = find(prompt.shown)
  if not approval then return end
  prompt.hidden[approval.id] = true
  close()
  local lines, marks = draw(approval)
  local buffer = look.buffer("mcp-approval://" .. approval.id, "mcp-approval")
  look.set_lines(buffer, lines)
  look.colour(buffer, namespace, marks)
  map_answers(buffer, function() return find(approval.id) end)
  local bar = look.winbar({ { " " .. approval.title, "McpTitle" } }, { { "?", "answers" }, { "q", "later" } })
  look.show(buffer, { mods = { tab = 0 }, wrap = true, winbar = bar })
  arm()
end

local function make_buffer()
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, "mcp-approval://waiting")
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].modeline = false
  vim.bo[buffer].filetype = "mcp-approval"
  map_answers(buffer, function() return find(prompt.shown) end)
  look.map(buffer, "n", "q", hide, "later")
  look.map(buffer, "n", "<Esc>", hide, "later")
  look.map(buffer, "n", "v", open_in_full, "in a whole window")
  return buffer
end

---Whether a question may take the focus now: only from somebody who is not in the middle of something.
local function may_take_focus()
  return config.get().auto_focus
    and vim.api.nvim_get_mode().mode == "n"
    and vim.fn.getcmdwintype() == ""
    and vim.api.nvim_win_get_config(0).relative == ""
    and vim.uv.now() - prompt.last_key > TYPING_MS
end

---At the bottom, but never over the line that somebody types in.
---@return table float, boolean cut whether some lines do not fit
local function geometry(lines, focus)
  local width, height = math.min(100, vim.o.columns - 4), 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.api.nvim_strwidth(line) / width))
  end
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
  },
    height > shown
end

---@param approval mcp_sidecar.Approval
---@param focus boolean
local function show(approval, focus)
  local lines, marks = draw(approval)
  if not (prompt.buffer and vim.api.nvim_buf_is_valid(prompt.buffer)) then prompt.buffer = make_buffer() end
  look.set_lines(prompt.buffer, lines)
  look.colour(prompt.buffer, namespace, marks)
  local place, cut = geometry(lines, focus)
  local title, waiting =
    { ({ tool = "approval", trust = "trust" })[approval.kind] or "question" }, #pictures.approvals()
  if waiting > 1 then table.insert(title, ("%d more wait"):format(waiting - 1)) end
  if cut then table.insert(title, "scroll to see all, v for a whole window") end
  local float = vim.tbl_extend("force", place, {
    title = " " .. table.concat(title, " · ") .. " ",
    footer = question.footer(approval, place.width),
    border = "rounded",
    style = "minimal",
    zindex = 200,
  })
  local fresh = not is_open()
  if fresh or prompt.shown ~= approval.id then arm() end
  if fresh then
    prompt.window = vim.api.nvim_open_win(prompt.buffer, false, vim.tbl_extend("error", float, { noautocmd = true }))
    for _, option in ipairs({ "wrap", "linebreak", "breakindent" }) do
      vim.wo[prompt.window][option] = true
    end
    vim.wo[prompt.window].winhighlight = "NormalFloat:Normal,FloatBorder:McpAsks,FloatTitle:McpTitle"
    vim.wo[prompt.window].fillchars = "eob: ,lastline: "
  else
    if prompt.shown ~= approval.id then vim.api.nvim_win_set_cursor(prompt.window, { 1, 0 }) end
    vim.api.nvim_win_set_config(prompt.window, float)
  end
  prompt.shown = approval.id
  if focus then vim.api.nvim_set_current_win(prompt.window) end
end

---Draws what waits now; closes the prompt when what it shows has been answered.
local function refresh()
  local approvals, waiting = pictures.approvals(), {}
  for _, approval in ipairs(approvals) do
    waiting[approval.id] = true
  end
  if prompt.shown and not waiting[prompt.shown] then
    if not answered[prompt.shown] then client.say("answered elsewhere, or no longer asked") end
    prompt.shown = nil
  end
  for id in pairs(prompt.hidden) do
    prompt.hidden[id] = waiting[id]
    local own = not waiting[id] and (look.find("mcp-answer://" .. id) or look.find("mcp-approval://" .. id))
    if own then
      vim.api.nvim_buf_delete(own, { force = true })
      if not answered[id] then client.say("answered elsewhere, or no longer asked") end
    end
  end
  local next_one = find(prompt.shown)
    or vim
      .iter(approvals)
      :find(function(approval) return not prompt.hidden[approval.id] and not answered[approval.id] end)
  if next_one then
    show(next_one, not is_open() and may_take_focus())
  else
    close()
  end
end

---Puts the focus on the oldest question, or on one in particular.
---@param id? string
function M.focus(id)
  prompt.hidden = {}
  local found = vim.iter(pictures.approvals()):find(function(approval) return not id or approval.id == id end)
  if not found then return client.say("nothing waits for an answer") end
  show(found, true)
  arm()
end

---Trust is given in sight of what will run: by the prompt, where one waits.
---@param server string
---@param trusted? boolean false: withdraw it
function M.trust(server, trusted)
  if trusted == false then return client.command("mcp.server.trust", { server = server, trusted = false }) end
  for _, approval in ipairs(pictures.approvals()) do
    if approval.kind == "trust" and approval.server == server then return M.focus(approval.id) end
  end
  client.fetch("mcp.servers", { server = server }, function(result)
    local status = result.servers[1]
    if not status then return client.complain(("no server named `%s`"):format(server)) end
    local shown = status.trustDiff and (status.trustDiff .. "\n") or ""
    local text = ("%s%s\n\nTrust this definition of %s?"):format(shown, json.pretty(status.config), server)
    if vim.fn.confirm(text, "&Trust\n&No", 2) == 1 then
      client.command("mcp.server.trust", { server = server, trusted = true })
    end
  end)
end

client.on("approvals", vim.schedule_wrap(refresh))
client.on("exit", refresh)

local group = vim.api.nvim_create_augroup("mcp_sidecar_approval", {})
-- A float belongs to one tab page: the question goes along to the one that is looked at.
vim.api.nvim_create_autocmd({ "VimResized", "TabEnter" }, {
  group = group,
  callback = function()
    if not is_open() then return end
    if vim.api.nvim_win_get_tabpage(prompt.window) ~= vim.api.nvim_get_current_tabpage() then
      vim.api.nvim_win_close(prompt.window, true)
      prompt.window = nil
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
