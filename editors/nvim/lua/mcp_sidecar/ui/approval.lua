--- Shows the questions that wait for the user, oldest first.
---
--- A question that the user did not cause never takes the focus. There is no default answer, and hiding the prompt is not
--- an answer. Which keys count is decided in `answers`.

local answers = require("mcp_sidecar.ui.answers")
local client = require("mcp_sidecar.client")
local config = require("mcp_sidecar.config")
local frame = require("mcp_sidecar.ui.frame")
local placement = require("mcp_sidecar.ui.placement")
local question = require("mcp_sidecar.ui.question")
local user_actions = require("mcp_sidecar.user_actions")
local windows = require("mcp_sidecar.ui.windows")
local workspaces = require("mcp_sidecar.workspaces")

local M = {}

local prompt = {
  window = nil, ---@type integer?
  buffer = nil, ---@type integer?
  shown = nil, ---@type string? the id of the question or group
  drawn = nil, ---@type mcp_sidecar.Question?
  lines = {}, ---@type mcp_sidecar.QuestionLine[]
  replaced = false, -- the question before it was shown to a user who had the focus here
  seen = {}, ---@type table<string, true?>
  hidden = {}, ---@type table<string, true?> left for later, or shown in a tab page
  queue = nil, ---@type table<string, true?>? what waited when the user came here to answer
  in_full = {}, ---@type table<string, mcp_sidecar.Question?> shown in tab pages
}
---@type table<string, mcp_sidecar.ClosedApproval?> how questions ended, until the user was told
local endings = {}

---@type fun(), fun()
local redraw, refresh

---The window of the prompt, while there is one.
local function window()
  if prompt.window and vim.api.nvim_win_is_valid(prompt.window) then return prompt.window end
end

local function is_focused() return vim.api.nvim_get_current_win() == window() end

local function close_window()
  local open = window()
  prompt.window = nil
  if open then vim.api.nvim_win_close(open, true) end
end

local function close()
  -- First, because closing the window triggers autocommands that draw what is shown.
  prompt.shown, prompt.drawn = nil, nil
  answers.forget_first_key()
  close_window()
end

-- Answers -----------------------------------------------------------------------------------------------------------

---@param asked mcp_sidecar.Question
---@param given mcp_sidecar.GivenAnswer
---@param extra? { note?: string, content?: table, arguments?: table }
---@param done? fun(err?: mcp_sidecar.Error)
local function send(asked, given, extra, done)
  prompt.queue = prompt.queue and workspaces.waiting_ids()
  answers.send(asked, given, extra, done)
end

---Hides the prompt while a question is in another window. Closing that window shows the prompt again.
---@return mcp_sidecar.Covering
local function cover(id)
  local shown = prompt.shown or id
  prompt.hidden[id], prompt.hidden[shown] = true, true
  close()
  return {
    closed = function()
      prompt.hidden[id], prompt.hidden[shown], prompt.in_full[id] = nil, nil, nil
      vim.schedule(refresh)
    end,
    back = function()
      local again = workspaces.find(shown) or workspaces.find(id)
      if again then M.focus(again.id) end
    end,
  }
end

---Opens a form for what an answer needs.
---@param asked mcp_sidecar.Question
---@param given mcp_sidecar.GivenAnswer
local function open_form(asked, given)
  local edit = given.choice.edit
  if asked.largeArguments then return client.info("the arguments are still being loaded") end
  require("mcp_sidecar.ui.answer_form")[edit and "edit" or "fill_in"](asked, {
    verb = edit and given.choice.answer.label:lower() or "send",
    open = function() return workspaces.find(asked.id) and cover(asked.id) end,
    accept = function(values, done)
      local changed = not vim.deep_equal(values, asked.arguments) and values or nil
      send(asked, given, edit and { arguments = changed } or { content = values }, done)
    end,
  })
end

---@param asked? mcp_sidecar.Question as it is shown
local function press(key, asked)
  -- An answer is about what the user sees, not about what has just replaced it.
  if not asked or not vim.deep_equal(workspaces.find(asked.id), asked) then return end
  local given = answers.press(key, asked)
  if not given then return end
  if given.choice.edit or asked.form and given.choice.answer.grants then return open_form(asked, given) end
  answers.arm()
  if not given.choice.note then return send(asked, given) end
  vim.ui.input({ prompt = "Why not? " }, function(note)
    if note then send(asked, given, { note = note ~= "" and note or nil }) end
  end)
end

-- Windows -----------------------------------------------------------------------------------------------------------

local answer_keys = vim.split("y n N c e f a s r p d", " ")
local dead_keys = vim.split("<CR> <Space> o i I A O x u R C D S X P J", " ")

---A buffer for a question. Keys that start an edit elsewhere do nothing here.
---@param asked fun(): mcp_sidecar.Question? the question that this buffer shows
local function make_buffer(name, asked)
  local buffer = windows.buffer("mcp-approval://" .. name, "mcp-approval")
  local function help()
    local shown = asked()
    if shown then windows.peek(question.help(shown, (select(2, answers.targets(shown)))), "answers") end
  end
  for _, key in ipairs(answer_keys) do
    windows.map(buffer, "n", key, function() press(key, asked()) end, "answer")
  end
  for _, key in ipairs(dead_keys) do
    windows.map(buffer, "n", key, "<Nop>", "nothing")
  end
  windows.map(buffer, "n", "?", help, "help")
  windows.map(buffer, "n", "g?", help, "help")
  return buffer
end

---Hides the prompt. Every question keeps waiting.
function M.later()
  if not window() then return client.info("no question is shown") end
  prompt.hidden = workspaces.waiting_ids()
  close()
end

local function escape()
  if not answers.first_key() then return M.later() end
  answers.forget_first_key()
  redraw()
end

---The question under the cursor: one of a group, or the one that is shown.
---@return mcp_sidecar.Question?
local function under_cursor()
  local line = prompt.lines[vim.api.nvim_win_get_cursor(0)[1]]
  if prompt.drawn and prompt.drawn.members then return line and line.id and workspaces.find(line.id) end
  return workspaces.find(prompt.shown)
end

---Marks the question under the cursor, or removes its mark.
local function mark()
  local asked = under_cursor()
  if not asked or asked.id == prompt.shown then return end
  answers.marked[asked.id] = not answers.marked[asked.id] or nil
  redraw()
end

---Draws a question in its tab page.
---@param asked mcp_sidecar.Question
local function draw_in_full(buffer, asked)
  if not vim.deep_equal(prompt.in_full[asked.id], asked) then
    prompt.in_full[asked.id] = asked
    windows.paint(buffer, question.draw(asked))
    answers.arm()
  end
  workspaces.fetch_arguments(asked, refresh)
  local first, shown = answers.first_key(asked), vim.fn.bufwinid(buffer)
  local title = { { first and " then" or " " .. asked.title, "McpTitle" } }
  if shown ~= -1 then vim.wo[shown].winbar = windows.winbar(title, question.hints(asked, first)) end
end

---Opens the question under the cursor in a tab page, where the same keys answer it.
local function open_in_full()
  local asked = under_cursor()
  if not asked then return end
  local id = asked.id
  local covering = cover(id)
  local buffer = make_buffer(id, function() return prompt.in_full[id] end)
  windows.show(buffer, { mods = { tab = 0 }, wrap = true })
  draw_in_full(buffer, asked)
  windows.on_close(buffer, covering)
end

local function prompt_buffer()
  if prompt.buffer and vim.api.nvim_buf_is_valid(prompt.buffer) then return prompt.buffer end
  local buffer = make_buffer("waiting", function() return prompt.drawn end)
  vim.bo[buffer].bufhidden = "hide"
  windows.map(buffer, "n", "q", M.later, "later")
  windows.map(buffer, "n", "<Esc>", escape, "back, or later")
  windows.map(buffer, "n", "v", open_in_full, "open in a tab page")
  windows.map(buffer, "n", "<Space>", mark, "mark one of several questions")
  prompt.buffer = buffer
  return buffer
end

---Moves the cursor of the prompt to the start; in a group to the same question, or the first.
---@param under? mcp_sidecar.QuestionLine where it was
local function place_cursor(open, under)
  local first, same
  for place, line in ipairs(prompt.lines) do
    first = first or line.id and place
    same = same or under and line.id and line.id == under.id and place
  end
  vim.api.nvim_win_set_cursor(open, { same or first or 1, 0 })
end

---Draws the prompt with a question; `enter` focuses it.
---@param asked mcp_sidecar.Question
local function show(asked, enter)
  local buffer, another, open = prompt_buffer(), not vim.deep_equal(prompt.drawn, asked), window()
  local focused = enter or is_focused()
  local under = open and prompt.lines[vim.api.nvim_win_get_cursor(open)[1]]
  if another then prompt.replaced = is_focused() end
  if focused then workspaces.fetch_arguments(asked, refresh) end
  prompt.lines = question.draw(asked, answers.marked)
  windows.paint(buffer, prompt.lines)
  prompt.shown, prompt.drawn = asked.id, asked
  if another or (enter and not is_focused()) then answers.arm() end
  local indent, breakindent = question.indent(asked)
  local height = windows.height(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), placement.width(), indent)
  local float, cut = placement.place(height, focused)
  if not float then return close_window() end
  local opts = { focused = focused, replaced = prompt.replaced, cut = cut, dead = answers.is_dead() }
  opts.more = #workspaces.approvals() - #(asked.members or { asked })
  opts.first, opts.marked = answers.first_key(asked), (select(2, answers.targets(asked)))
  float = vim.tbl_extend("error", float, frame.of(asked, opts, placement.width()))
  if open then vim.api.nvim_win_set_config(open, float) end
  prompt.window = open or windows.float(buffer, false, "McpMuted", float)
  if another or not open then place_cursor(prompt.window, under) end
  vim.wo[prompt.window].winhighlight = ("NormalFloat:Normal,FloatBorder:%s"):format(focused and "McpWarn" or "McpMuted")
  vim.wo[prompt.window].cursorline = focused and asked.members ~= nil
  vim.wo[prompt.window].breakindentopt = breakindent
  if enter then
    vim.cmd.stopinsert()
    vim.api.nvim_set_current_win(prompt.window)
  end
end

---@param asked? mcp_sidecar.Question
local function draw(asked)
  if asked then show(asked, false) end
  for id in pairs(prompt.in_full) do
    local buffer, shown = windows.find("mcp-approval://" .. id), workspaces.find(id)
    if buffer and shown then draw_in_full(buffer, shown) end
  end
end

function redraw() draw(workspaces.find(prompt.shown)) end

---Marks all questions as seen.
---@return mcp_sidecar.Question? expected a new one about something that the user has just started here
local function take_new()
  local expected
  for _, approval in ipairs(workspaces.approvals()) do
    if not prompt.seen[approval.id] and user_actions.caused(approval) then expected = expected or approval end
  end
  prompt.seen = workspaces.waiting_ids()
  return expected
end

---Says how questions ended that were on the screen and were not answered here.
---@param ids string[]
local function report(ids)
  local function is_news(id) return not workspaces.find(id) and not answers.given[id] end
  local unknown = { title = "The question", message = "answered elsewhere or withdrawn" }
  local ended = vim.iter(ids):filter(is_news):map(function(id) return endings[id] or unknown end):totable()
  vim.iter(question.endings(ended)):each(function(text) client.info(text) end)
  endings = {}
end

---Draws what waits now; closes the prompt, forms and tab pages when what they show has ended.
function refresh()
  local before, drawn = prompt.shown, prompt.drawn
  local in_view = vim.tbl_map(function(each) return each.id end, drawn and (drawn.members or { drawn }) or {})
  for id in pairs(prompt.hidden) do
    prompt.hidden[id] = workspaces.find(id) and true or nil
  end
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local id = vim.api.nvim_buf_get_name(buffer):match("^mcp%-a%l+://(.*)")
    if id and buffer ~= prompt.buffer and not workspaces.find(id) then
      vim.api.nvim_buf_delete(buffer, { force = true })
      if not vim.list_contains(in_view, id) then table.insert(in_view, id) end
    end
  end
  report(in_view)
  answers.forget(function(id) return workspaces.find(id) ~= nil end)
  local expected = take_new()
  if expected and config.get().auto_focus and user_actions.is_at_rest() then
    prompt.queue = nil
    return show(expected, true)
  end
  local function is_new(asked) return not prompt.hidden[asked.id] and not answers.is_given(asked) end
  local same = is_focused() and workspaces.find(before) or before and workspaces.listed(before)
  local next_one = same or vim.iter(workspaces.questions()):find(is_new)
  local expects_next = next_one and (next_one.id == before or (prompt.queue or {})[next_one.id])
  -- The user came to answer other questions: this one gets no key before they come again.
  if not next_one or (is_focused() and not expects_next) then close() end
  draw(next_one)
end

---Focuses the oldest question, or this one.
---@param id? string
function M.focus(id)
  prompt.hidden, prompt.queue = {}, workspaces.waiting_ids()
  local found = workspaces.find(id) or (not id and workspaces.questions()[1])
  if not found then return client.info("no question is waiting for an answer") end
  if vim.fn.getcmdwintype() ~= "" then return client.warn("close the command-line window first") end
  show(found, true)
end

---Denies the call that is shown, this time only.
function M.deny()
  local asked = window() and workspaces.find(prompt.shown)
  if not asked then return client.info("no question is shown") end
  if answers.is_dead() then return client.warn("not denied: the question has just appeared") end
  local answer = vim.iter(asked.answers):find(function(each) return not each.grants and not each.lasts end)
  if not answer or asked.kind ~= "tool" or asked.members then return M.focus(asked.id) end
  send(asked, { choice = { keys = "", answer = answer, label = answer.label }, ids = { asked.id } })
  client.info(("denied `%s/%s` once"):format(asked.server, asked.tool))
end

---Shows the question whether to trust a server, even if the user refused it before.
---@param server string
function M.trust(server)
  for _, approval in ipairs(workspaces.approvals()) do
    if approval.kind == "trust" and approval.server == server then return M.focus(approval.id) end
  end
  user_actions.add({ server = server })
  client.fetch("mcp.server.trust", { server = server, ask = true }, function() end)
end

answers.attach(function() redraw() end)
client.on("approvals", function(change)
  for _, ending in ipairs(change.closed or {}) do
    endings[ending.id] = ending
  end
  vim.schedule(refresh)
end)
client.on("exit", refresh)

vim.on_key(function(_, typed)
  if typed == "" or vim.bo.filetype ~= "mcp-approval" then return end
  if answers.is_dead() then answers.arm() end
  if answers.first_key() and not vim.list_contains(answer_keys, typed) then
    if typed ~= vim.keycode("<Esc>") then answers.forget_first_key() end
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
    prompt.hidden, prompt.shown = workspaces.waiting_ids(), nil
  end
end)
on({ "WinEnter", "WinLeave" }, function()
  if vim.bo.filetype ~= "mcp-approval" then return end
  answers.arm()
  vim.schedule(redraw)
end)
on({ "CursorMoved", "CursorMovedI", "TextChangedT", "WinScrolled", "WinEnter" }, function()
  local open = window()
  if is_focused() or not prompt.shown then return end
  if not open or placement.covers_cursor(vim.api.nvim_win_get_config(open)) then redraw() end
end)

---For tests: what is on the screen.
function M.state()
  return vim.tbl_extend(
    "error",
    prompt,
    { armed = answers.armed, first = answers.first_key(), marked = answers.marked }
  )
end

return M
