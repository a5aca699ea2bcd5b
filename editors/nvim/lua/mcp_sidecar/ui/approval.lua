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

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_approval")
local prompt = { window = nil, buffer = nil, shown = nil, armed = 0, hidden = {}, last_key = vim.uv.now() }
local answered = {}

vim.on_key(function()
  prompt.last_key = vim.uv.now()
end, namespace)

---@return mcp_sidecar.Approval?
local function current()
  for _, approval in ipairs(pictures.approvals()) do
    if approval.id == prompt.shown then
      return approval
    end
  end
end

local function close()
  if prompt.window and vim.api.nvim_win_is_valid(prompt.window) then
    vim.api.nvim_win_close(prompt.window, true)
  end
  prompt.window, prompt.shown = nil, nil
end

local function arm()
  prompt.armed = vim.uv.now() + DEAD_MS
end

---@param approval mcp_sidecar.Approval
local function send(approval, decision, extra)
  answered[approval.id] = true
  local params = vim.tbl_extend("force", { id = approval.id, decision = decision }, extra or {})
  client.command("mcp.approval.resolve", params, function(err)
    if err then
      answered[approval.id] = nil
      client.complain(err)
    end
  end, { client = vim.lsp.get_client_by_id(approval.client_id) })
end

---Sends the answer that a key stands for, if it can have been meant.
local function answer_with(answer)
  local approval = current()
  if not approval or vim.uv.now() < prompt.armed then
    return
  end
  arm()
  if answer.decision == "accept" and approval.schema then
    return M.fill(approval)
  elseif answer.note then
    vim.ui.input({ prompt = "Why not? " }, function(note)
      if note then
        send(approval, answer.decision, { note = note ~= "" and note or nil })
      end
    end)
  else
    send(approval, answer.decision)
  end
end

---Asks for the fields of a form, one after another, and sends them together.
---@param approval mcp_sidecar.Approval
function M.fill(approval)
  require("mcp_sidecar.ui.fields").ask(approval.schema, function(content)
    if content then
      send(approval, "accept", { content = next(content) and content or vim.empty_dict() })
    end
  end)
end

local function hide()
  for _, approval in ipairs(pictures.approvals()) do
    prompt.hidden[approval.id] = true
  end
  close()
end

local function open_in_full()
  local approval = current()
  if not approval then
    return
  end
  local lines = question.draw(approval)
  local buffer = look.buffer("mcp-approval://" .. approval.id, "mcp-approval")
  look.set_lines(buffer, lines)
  look.map(buffer, "n", "q", look.close, "close")
  look.show(buffer, { tab = 0 })
end

local function help()
  local lines = {}
  for _, answer in ipairs(question.choices(current() or { options = {} })) do
    table.insert(lines, ("`%s`  %s"):format(answer.key, answer.label))
  end
  vim.list_extend(
    lines,
    { "`f`  fill in the form", "`v`  in a whole window", "`q`  later: the question goes on waiting" }
  )
  look.peek(lines, { title = "answers" })
end

local function make_buffer()
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, "mcp-approval://waiting")
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].modeline = false
  vim.bo[buffer].filetype = "mcp-approval"
  for _, answer in ipairs(question.answers) do
    look.map(buffer, "n", answer.key, function()
      local approval = current()
      for _, choice in ipairs(approval and question.choices(approval) or {}) do
        if choice.key == answer.key then
          return answer_with(choice)
        end
      end
    end, answer.label)
  end
  look.map(buffer, "n", "f", function()
    local approval = current()
    if approval and approval.schema and vim.uv.now() >= prompt.armed then
      M.fill(approval)
    end
  end, "fill in the form")
  -- What other windows answer to must not answer here.
  for _, key in ipairs({ "<CR>", "<Space>", "o", "i", "I", "A", "O", "x", "u" }) do
    look.map(buffer, "n", key, "<Nop>", "nothing")
  end
  look.map(buffer, "n", "q", hide, "later")
  look.map(buffer, "n", "<Esc>", hide, "later")
  look.map(buffer, "n", "v", open_in_full, "in a whole window")
  look.map(buffer, "n", "?", help, "help")
  look.map(buffer, "n", "g?", help, "help")
  return buffer
end

---Whether the focus may go to the prompt without being asked for.
local function may_take_focus()
  return config.get().auto_focus
    and vim.api.nvim_get_mode().mode == "n"
    and vim.fn.getcmdwintype() == ""
    and vim.api.nvim_win_get_config(0).relative == ""
    and vim.uv.now() - prompt.last_key > TYPING_MS
end

---@return table float, boolean cut whether some lines do not fit
local function geometry(lines)
  local width = math.min(100, vim.o.columns - 4)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.api.nvim_strwidth(line) / width))
  end
  local room = vim.o.lines - 6
  local cut = height > room
  height = math.max(3, math.min(height, room))
  return {
    relative = "editor",
    width = width,
    height = height,
    row = vim.o.lines - height - 4,
    col = math.floor((vim.o.columns - width) / 2) - 1,
  },
    cut
end

---@param approval mcp_sidecar.Approval
---@param focus boolean
local function show(approval, focus)
  local lines, marks = question.draw(approval)
  if not (prompt.buffer and vim.api.nvim_buf_is_valid(prompt.buffer)) then
    prompt.buffer = make_buffer()
  end
  look.set_lines(prompt.buffer, lines)
  vim.api.nvim_buf_clear_namespace(prompt.buffer, namespace, 0, -1)
  for _, mark in ipairs(marks) do
    local row = mark[1]
    vim.api.nvim_buf_set_extmark(prompt.buffer, namespace, row, mark[3] or 0, {
      end_col = mark[4] or #lines[row + 1],
      hl_group = mark[2],
    })
  end
  local waiting = #pictures.approvals()
  local place, cut = geometry(lines)
  local titles = { tool = "approval", trust = "trust" }
  local title = { titles[approval.kind] or "question" }
  if waiting > 1 then
    table.insert(title, ("%d more wait"):format(waiting - 1))
  end
  if cut then
    table.insert(title, "scroll to see all, v for a whole window")
  end
  local float = vim.tbl_extend("force", place, {
    title = " " .. table.concat(title, " · ") .. " ",
    footer = question.footer(approval),
    border = "rounded",
    style = "minimal",
    zindex = 200,
  })
  if prompt.window and vim.api.nvim_win_is_valid(prompt.window) then
    if prompt.shown ~= approval.id then
      arm()
      vim.api.nvim_win_set_cursor(prompt.window, { 1, 0 })
    end
    vim.api.nvim_win_set_config(prompt.window, float)
  else
    arm()
    prompt.window = vim.api.nvim_open_win(prompt.buffer, false, vim.tbl_extend("error", float, { noautocmd = true }))
    vim.wo[prompt.window].wrap = true
    vim.wo[prompt.window].linebreak = true
    vim.wo[prompt.window].breakindent = true
    vim.wo[prompt.window].winhighlight = "NormalFloat:Normal,FloatBorder:McpAsks,FloatTitle:McpTitle"
  end
  prompt.shown = approval.id
  if focus then
    vim.api.nvim_set_current_win(prompt.window)
  end
end

---Draws what waits now; closes the prompt when what it shows has been answered.
local function refresh()
  local approvals = pictures.approvals()
  local waiting = {}
  for _, approval in ipairs(approvals) do
    waiting[approval.id] = true
  end
  if prompt.shown and not waiting[prompt.shown] then
    if not answered[prompt.shown] then
      client.say("answered elsewhere, or no longer asked")
    end
    prompt.shown = nil
  end
  for id in pairs(prompt.hidden) do
    prompt.hidden[id] = waiting[id]
  end
  local next_one
  for _, approval in ipairs(approvals) do
    if approval.id == prompt.shown then
      next_one = approval
      break
    end
    if not next_one and not prompt.hidden[approval.id] and not answered[approval.id] then
      next_one = approval
    end
  end
  if next_one then
    local fresh = not (prompt.window and vim.api.nvim_win_is_valid(prompt.window))
    show(next_one, fresh and may_take_focus())
  else
    close()
  end
end

---Puts the focus on the oldest question, or on one in particular.
---@param id? string
---@param server? string
function M.focus(id, server)
  prompt.hidden = {}
  for _, approval in ipairs(pictures.approvals()) do
    if (not id or approval.id == id) and (not server or approval.server == server) then
      show(approval, true)
      arm()
      return true
    end
  end
  if not server then
    client.say("nothing waits for an answer")
  end
  return false
end

---Trust is given in sight of what will run: by the prompt, where one waits.
---@param server string
---@param trusted? boolean false: withdraw it
function M.trust(server, trusted)
  if trusted == false then
    return client.command("mcp.server.trust", { server = server, trusted = false })
  end
  for _, approval in ipairs(pictures.approvals()) do
    if approval.kind == "trust" and approval.server == server then
      return M.focus(approval.id)
    end
  end
  client.command("mcp.servers", { server = server }, function(err, result)
    local status = result and result.servers[1]
    if err or not status then
      return client.complain(err or { message = ("no server named `%s`"):format(server) })
    end
    local shown = status.trustDiff and (status.trustDiff .. "\n") or ""
    local text = ("%s%s\n\nTrust this definition of %s?"):format(shown, json.pretty(status.config), server)
    if vim.fn.confirm(text, "&Trust\n&No", 2) == 1 then
      client.command("mcp.server.trust", { server = server, trusted = true })
    end
  end)
end

client.on("approvals", function()
  vim.schedule(refresh)
end)
client.on("exit", refresh)

local group = vim.api.nvim_create_augroup("mcp_sidecar_approval", {})
vim.api.nvim_create_autocmd("VimResized", {
  group = group,
  callback = function()
    if prompt.window and vim.api.nvim_win_is_valid(prompt.window) then
      refresh()
    end
  end,
})
vim.api.nvim_create_autocmd("WinEnter", {
  group = group,
  callback = function()
    if vim.api.nvim_get_current_win() == prompt.window then
      arm()
    end
  end,
})

---For tests: what is on the screen.
function M.state()
  return prompt
end

return M
