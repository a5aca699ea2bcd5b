--- Highlight groups, icons, and the few things that all windows of ours do alike.

local config = require("mcp_sidecar.config")

local M = {}

local links = {
  McpTitle = "Title",
  McpConnected = "DiagnosticOk",
  McpPending = "DiagnosticWarn",
  McpFailed = "DiagnosticError",
  McpNeedsAuth = "DiagnosticWarn",
  McpStopped = "Comment",
  McpDisabled = "Comment",
  McpServer = "Identifier",
  McpTool = "Function",
  McpKey = "Special",
  McpMuted = "Comment",
  McpDanger = "DiagnosticError",
  McpAllowed = "DiagnosticOk",
  McpAsks = "DiagnosticWarn",
  McpDenied = "DiagnosticError",
  McpAdded = "DiffAdd",
  McpRemoved = "DiffDelete",
}

local function define()
  for name, link in pairs(links) do
    vim.api.nvim_set_hl(0, name, { link = link, default = true })
  end
end
define()
vim.api.nvim_create_autocmd("ColorScheme", {
  group = vim.api.nvim_create_augroup("mcp_sidecar_look", {}),
  callback = define,
})

local icons = {
  connected = { "●", "*" },
  pending = { "◌", "~" },
  failed = { "✗", "x" },
  ["needs-auth"] = { "◆", "!" },
  stopped = { "○", "o" },
  disabled = { "⊘", "-" },
  ask = { "?", "?" },
  folded = { "▸", "+" },
  unfolded = { "▾", "-" },
  ok = { "✓", "v" },
  cut = { "…", "~" },
}

---@param name string
---@return string
function M.icon(name) return icons[name][config.get().icons and 1 or 2] end

M.status_groups = {
  connected = "McpConnected",
  pending = "McpPending",
  failed = "McpFailed",
  ["needs-auth"] = "McpNeedsAuth",
  stopped = "McpStopped",
  disabled = "McpDisabled",
}

---@param level string
---@return string group
function M.level_group(level)
  if level == "deny" or level == "disable" then return "McpDenied" end
  return level == "require-approval" and "McpAsks" or "McpAllowed"
end

---What a tool does, in a word, by its own account.
---@return string word, string group
function M.manner(annotations)
  annotations = annotations or {}
  if annotations.readOnly then return "reads", "McpMuted" end
  if annotations.destructive then return "destroys", "McpDanger" end
  if annotations.readOnly == false then return "writes", "McpAsks" end
  return "", "McpMuted"
end

-- Text ------------------------------------------------------------------------------------------------------------

---Cut to a width on the screen, on one line.
---@param text any
---@param width integer
---@return string
function M.fit(text, width)
  text = tostring(text or ""):gsub("%c+", " ")
  if vim.api.nvim_strwidth(text) <= width then return text end
  while text ~= "" and vim.api.nvim_strwidth(text) > width - 1 do
    text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 1)
  end
  return text .. M.icon("cut")
end

---Cut, or filled up with blanks.
---@return string
function M.pad(text, width)
  text = M.fit(text, width)
  return text .. (" "):rep(width - vim.api.nvim_strwidth(text))
end

---Broken into lines of a width, at blanks where there are some.
---@param text string
---@param width integer
---@return string[]
function M.wrap(text, width)
  local lines = {}
  for paragraph in vim.gsplit(text, "\n") do
    while vim.api.nvim_strwidth(paragraph) > width do
      local head = vim.fn.strcharpart(paragraph, 0, width)
      head = head:match("^(.*%S)%s") or head
      table.insert(lines, head)
      paragraph = vim.trim(paragraph:sub(#head + 1))
    end
    table.insert(lines, paragraph)
  end
  return lines
end

---Safe in a statusline, winbar or title: nothing in it is a command.
function M.literal(text) return (tostring(text):gsub("%%", "%%%%"):gsub("%c+", " ")) end

---A number of milliseconds as a person says it.
---@param ms? number
function M.duration(ms)
  if not ms then return "" end
  if ms >= 1000 then return ("%.1f s"):format(ms / 1000) end
  return (ms < 10 and "%.1f ms" or "%d ms"):format(ms)
end

---The time of day here, of a time in RFC 3339 and UTC.
---@param time? string
function M.clock(time)
  local year, month, day, hour, minute, second = (time or ""):match("(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)")
  if not year then return time or "" end
  local utc = os.time({ year = year, month = month, day = day, hour = hour, min = minute, sec = second, isdst = false })
  local now = os.time()
  local offset = os.difftime(now, os.time(os.date("!*t", now) --[[@as osdateparam]]))
  return os.date("%H:%M:%S", utc + offset) --[[@as string]]
end

-- Buffers and windows ---------------------------------------------------------------------------------------------

---The buffer with exactly this name: `bufnr()` would take it for a pattern.
---@param name string
---@return integer?
function M.find(name)
  return vim.iter(vim.api.nvim_list_bufs()):find(function(buffer) return vim.api.nvim_buf_get_name(buffer) == name end)
end

---Closes the current window; the last one gets an empty buffer instead.
function M.close()
  if not pcall(vim.api.nvim_win_close, 0, true) then vim.cmd.enew() end
end

---A buffer of ours: no file, no modelines, gone when it is not shown, `q` closes it.
---@param name string
---@param filetype string
---@return integer buffer
function M.buffer(name, filetype)
  local buffer = M.find(name)
  if not buffer then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
    M.map(buffer, "n", "q", M.close, "close")
  end
  for option, value in pairs({ buftype = "nofile", bufhidden = "wipe", swapfile = false, modeline = false }) do
    vim.bo[buffer][option] = value
  end
  if vim.bo[buffer].filetype ~= filetype then vim.bo[buffer].filetype = filetype end
  return buffer
end

local plain_window = {
  number = false,
  relativenumber = false,
  signcolumn = "no",
  foldcolumn = "0",
  list = false,
  spell = false,
  wrap = false,
  fillchars = "eob: ",
}

---The window of this buffer, or of another of its kind: a second form takes the place of the first.
---@param buffer integer
---@return integer?
local function window_of(buffer)
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then return window end
  local kind = vim.api.nvim_buf_get_name(buffer):match("^mcp%-%l+://")
  return kind
    and vim.iter(vim.api.nvim_tabpage_list_wins(0)):find(function(other)
      local float = vim.api.nvim_win_get_config(other).relative ~= ""
      return not float and vim.startswith(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(other)), kind)
    end)
end

---Shows a buffer in a window that is there for it, or in a new one below.
---@param buffer integer
---@param opts? { mods?: table, winbar?: string, wrap?: boolean } mods: as nvim_create_user_command gives them
---@return integer window
function M.show(buffer, opts)
  opts = opts or {}
  local mods = opts.mods or {}
  local window = window_of(buffer)
  if not window then
    -- A float cannot be split.
    if vim.api.nvim_win_get_config(0).relative ~= "" then vim.cmd.wincmd("t") end
    local placed = mods.vertical or (mods.tab or -1) >= 0 or (mods.split or "") ~= ""
    vim.cmd.split({ mods = placed and mods or { split = "botright" } })
    window = vim.api.nvim_get_current_win()
    if not placed then vim.api.nvim_win_set_height(window, math.max(10, math.floor(vim.o.lines * 0.6))) end
  end
  vim.api.nvim_set_current_win(window)
  if vim.api.nvim_win_get_buf(window) ~= buffer then
    vim.api.nvim_win_set_buf(window, buffer)
    for option, value in pairs(plain_window) do
      vim.api.nvim_set_option_value(option, value, { scope = "local", win = window })
    end
  end
  if opts.wrap ~= nil then vim.wo[window].wrap = opts.wrap end
  if opts.winbar then vim.wo[window].winbar = opts.winbar end
  return window
end

---Replaces a buffer's lines, touching only those that differ, so that nothing flickers.
---@param buffer integer
---@param lines string[]
function M.set_lines(buffer, lines)
  local old = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local first, last = 1, 0
  while first <= #lines and first <= #old and lines[first] == old[first] do
    first = first + 1
  end
  local empty = #old == 1 and old[1] == ""
  while
    not empty
    and last < #lines - first + 1
    and last < #old - first + 1
    and lines[#lines - last] == old[#old - last]
  do
    last = last + 1
  end
  if first > #lines and #lines == #old then return end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, first - 1, #old - last, false, vim.list_slice(lines, first, #lines - last))
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

---Colours parts of lines anew: line and columns from 0, and the group; without columns all of the line.
---@param buffer integer
---@param namespace integer
---@param marks { [1]: integer, [2]: string, [3]?: integer, [4]?: integer }[]
function M.colour(buffer, namespace, marks)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  for _, mark in ipairs(marks) do
    local length = #vim.api.nvim_buf_get_lines(buffer, mark[1], mark[1] + 1, false)[1]
    local part = mark[3] and { end_col = math.min(mark[4], length) } or { end_row = mark[1] + 1, hl_eol = true }
    local extmark = vim.tbl_extend("force", part, { hl_group = mark[2], strict = false })
    vim.api.nvim_buf_set_extmark(buffer, namespace, mark[1], math.min(mark[3] or 0, length), extmark)
  end
end

---A line above a window: what it shows on the left, and its keys on the right, as many as there is room for: all, the
---first and the last, which is help, or none.
---@param chunks { [1]: string, [2]: string }[] text and highlight group
---@param keys { [1]: string, [2]: string }[]
---@return string
function M.winbar(chunks, keys)
  local left, width = {}, 2
  for _, chunk in ipairs(chunks) do
    table.insert(left, ("%%#%s#%s"):format(chunk[2], M.literal(chunk[1])))
    width = width + vim.api.nvim_strwidth(chunk[1])
  end
  local function hints(list)
    local text, room = "", width
    for _, key in ipairs(list) do
      text = text .. ("%%#McpKey# %s%%#McpMuted# %s"):format(key[1], key[2])
      room = room + #key[1] + #key[2] + 2
    end
    return ("winwidth(0) >= %d ? '%s'"):format(room, text)
  end
  local choice = hints(keys) .. " : " .. hints({ keys[1], #keys > 1 and keys[#keys] or nil }) .. " : ''"
  return table.concat(left) .. "%#McpMuted#%<%=%{%" .. choice .. "%} "
end

---@param buffer integer
---@param mode string|string[]
---@param keys string
---@param run string|function
---@param desc string
function M.map(buffer, mode, keys, run, desc)
  vim.keymap.set(mode, keys, run, { buffer = buffer, nowait = true, silent = true, desc = desc })
end

---Maps a list of keys, and `g?` to a list of them.
---@param buffer integer
---@param title string
---@param keys { [1]: string, [2]: string|function, [3]: string, mode?: string|string[] }[] names parted by a blank
function M.keys(buffer, title, keys)
  local lines = {}
  for _, key in ipairs(keys) do
    local names = vim.split(key[1], " ")
    for _, name in ipairs(names) do
      M.map(buffer, key.mode or "n", name, key[2], key[3])
    end
    table.insert(lines, ("`%s`  %s"):format(table.concat(names, "` `"), key[3]))
  end
  table.insert(lines, "`q`  close")
  M.map(buffer, "n", "g?", function() M.peek(lines, title) end, "help")
end

---Puts text into the registers that a person pastes from.
function M.yank(text)
  vim.fn.setreg('"', text)
  pcall(vim.fn.setreg, "+", text)
end

---Lets the user choose, and goes on only if he does.
---@generic T
---@param items T[]
---@param opts { prompt: string, kind?: string, format?: fun(item: T): string }
---@param done fun(item: T)
function M.choose(items, opts, done)
  local format = opts.format or tostring
  local select = {
    prompt = opts.prompt,
    kind = opts.kind,
    format_item = function(item) return M.fit(format(item), vim.o.columns - 6) end,
  }
  vim.ui.select(items, select, function(item)
    if item ~= nil then done(item) end
  end)
end

---A float with markdown in the middle of the screen, for help and details. Leaving it closes it.
---@param lines string[]
---@param title string
function M.peek(lines, title)
  local width, height = 20, 0
  for _, line in ipairs(lines) do
    width = math.max(width, vim.api.nvim_strwidth(line) + 2)
  end
  width = math.min(width, vim.o.columns - 4)
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.api.nvim_strwidth(line) / width))
  end
  height = math.min(height, vim.o.lines - 6)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].modeline = false
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].filetype = "markdown"
  vim.bo[buffer].modifiable = false
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = "editor",
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 2),
    col = math.max(0, math.floor((vim.o.columns - width) / 2) - 1),
    width = width,
    height = height,
    border = "rounded",
    style = "minimal",
    -- Above a question: help about it is of no use beneath.
    zindex = 250,
    title = " " .. M.fit(title, width - 4) .. " ",
  })
  pcall(vim.treesitter.start, buffer, "markdown")
  for option, value in pairs({
    conceallevel = 2,
    concealcursor = "n",
    wrap = true,
    linebreak = true,
    winhighlight = "NormalFloat:Normal,FloatBorder:McpMuted,FloatTitle:McpTitle",
  }) do
    vim.wo[window][option] = value
  end
  for _, key in ipairs({ "q", "<Esc>", "<CR>" }) do
    M.map(buffer, "n", key, M.close, "close")
  end
  vim.api.nvim_create_autocmd("WinLeave", {
    buffer = buffer,
    once = true,
    callback = function() pcall(vim.api.nvim_win_close, window, true) end,
  })
end

---The same with a value as JSON.
---@param value any
---@param title string
function M.peek_json(value, title)
  local lines = vim.list_extend({ "```json" }, require("mcp_sidecar.json").lines(value))
  M.peek(vim.list_extend(lines, { "```" }), title)
end

return M
