--- Shows the questions that wait for the user, oldest first, and sends the answers back.
---
--- Consent must be meant: the prompt never takes the focus from somebody who types, its keys are dead for a moment
--- after it appears or changes, there is no default answer, and hiding it is not one.

local client = require("mcp_sidecar.client")
local config = require("mcp_sidecar.config")
local json = require("mcp_sidecar.json")
local look = require("mcp_sidecar.ui.look")

local M = {}

-- Keys that were meant for something else arrive within this time.
local DEAD_MS = 400
-- Somebody whose last key is younger than this is typing.
local TYPING_MS = 1000

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_approval")
local prompt = { window = nil, buffer = nil, shown = nil, armed = 0, hidden = {} }
local answered = {}
local last_key = vim.uv.now()

vim.on_key(function()
  last_key = vim.uv.now()
end, namespace)

local answers = {
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
local function choices(approval)
  return vim.tbl_filter(function(answer)
    return vim.tbl_contains(approval.options, answer.decision)
  end, answers)
end

---@return mcp_sidecar.Approval?
local function current()
  for _, approval in ipairs(client.picture().approvals) do
    if approval.id == prompt.shown then
      return approval
    end
  end
end

---@param approval mcp_sidecar.Approval
---@return string[] lines, { [1]: integer, [2]: string, [3]?: integer, [4]?: integer }[] marks by line from 0
local function draw(approval)
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
local function footer(approval)
  local chunks = {}
  local function key(name, label)
    table.insert(chunks, { " " .. name, "McpKey" })
    table.insert(chunks, { " " .. label .. " ", "McpMuted" })
  end
  for _, answer in ipairs(choices(approval)) do
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
  end)
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
  for _, approval in ipairs(client.picture().approvals) do
    prompt.hidden[approval.id] = true
  end
  close()
end

local function open_in_full()
  local approval = current()
  if not approval then
    return
  end
  local lines = draw(approval)
  local buffer = look.buffer("mcp-approval://" .. approval.id, "mcp-approval")
  look.set_lines(buffer, lines)
  look.map(buffer, "n", "q", "<Cmd>close<CR>", "close")
  look.show(buffer, { tab = 0 })
end

local function help()
  local lines = {}
  for _, answer in ipairs(choices(current() or { options = {} })) do
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
  for _, answer in ipairs(answers) do
    look.map(buffer, "n", answer.key, function()
      local approval = current()
      for _, choice in ipairs(approval and choices(approval) or {}) do
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
    and vim.uv.now() - last_key > TYPING_MS
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
  local lines, marks = draw(approval)
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
  local waiting = #client.picture().approvals
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
    footer = footer(approval),
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
  local approvals = client.picture().approvals
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
  for _, approval in ipairs(client.picture().approvals) do
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
  for _, approval in ipairs(client.picture().approvals) do
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
    local question = ("%s%s\n\nTrust this definition of %s?"):format(shown, json.pretty(status.config), server)
    if vim.fn.confirm(question, "&Trust\n&No", 2) == 1 then
      client.command("mcp.server.trust", { server = server, trusted = true })
    end
  end)
end

client.on("approvals", function()
  vim.schedule(refresh)
end)
client.on("exit", function()
  close()
end)

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
