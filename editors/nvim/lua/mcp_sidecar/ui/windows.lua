--- Buffers, windows, keys and pickers, as every view of the plugin uses them.

local style = require("mcp_sidecar.ui.style")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar")

---The buffer with exactly this name; `bufnr()` treats the name as a pattern.
---@param name string
---@return integer?
function M.find(name)
  return vim.iter(vim.api.nvim_list_bufs()):find(function(buffer) return vim.api.nvim_buf_get_name(buffer) == name end)
end

---The window that shows the buffer with this name.
---@param name string
---@return integer?
function M.window_of(name)
  local window = vim.fn.bufwinid(M.find(name) or -1)
  return window ~= -1 and window or nil
end

---Closes the current window; the last one gets an empty buffer instead.
function M.close()
  if not pcall(vim.api.nvim_win_close, 0, true) then vim.cmd.enew() end
end

---A buffer of the plugin: no file, no modelines, wiped when hidden, closed by `q`. Without a name it is a new one.
---@param name? string
---@param filetype string
---@return integer buffer
function M.buffer(name, filetype)
  local buffer = name and M.find(name)
  if not buffer then
    buffer = vim.api.nvim_create_buf(false, true)
    if name then vim.api.nvim_buf_set_name(buffer, name) end
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
  cursorline = false,
  list = false,
  spell = false,
  wrap = false,
  fillchars = "eob: ",
}

---A window with another buffer of the same kind: a second form replaces the first.
---@param buffer integer
---@return integer?
local function window_of_kind(buffer)
  local kind = vim.api.nvim_buf_get_name(buffer):match("^mcp%-%l+://")
  return kind
    and vim.iter(vim.api.nvim_tabpage_list_wins(0)):find(function(window)
      local float = vim.api.nvim_win_get_config(window).relative ~= ""
      return not float and vim.startswith(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window)), kind)
    end)
end

---Shows a buffer in the window of its kind, or in a new one below.
---@param buffer integer
---@param opts? { mods?: table, winbar?: string, wrap?: boolean } mods: as nvim_create_user_command gives them
---@return integer window
function M.show(buffer, opts)
  opts = opts or {}
  local mods, shown = opts.mods or {}, vim.fn.bufwinid(buffer)
  local window = shown ~= -1 and shown or window_of_kind(buffer)
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

---Opens a float with a border in this highlight group.
---@param buffer integer
---@param enter boolean
---@param frame string highlight group
---@param place vim.api.keyset.win_config
---@return integer window
function M.float(buffer, enter, frame, place)
  local defaults = { relative = "editor", border = "rounded", style = "minimal", noautocmd = not enter or nil }
  local window = vim.api.nvim_open_win(buffer, enter, vim.tbl_extend("keep", place, defaults))
  for option, value in pairs({
    wrap = true,
    linebreak = true,
    breakindent = true,
    fillchars = "eob: ,lastline: ",
    winhighlight = ("NormalFloat:Normal,FloatBorder:%s,FloatTitle:McpTitle"):format(frame),
  }) do
    vim.wo[window][option] = value
  end
  return window
end

---The number of screen rows of some lines when they are wrapped.
---@param lines string[]
---@param width integer
---@return integer
function M.height(lines, width)
  return vim
    .iter(lines)
    :fold(0, function(sum, line) return sum + math.max(1, math.ceil(vim.api.nvim_strwidth(line) / width)) end)
end

---Replaces the lines of a buffer. Only lines that differ are written, so nothing flickers.
---@param buffer integer
---@param lines string[]
function M.set_lines(buffer, lines)
  local old = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  vim.bo[buffer].modifiable = true
  for row, line in ipairs(lines) do
    if line ~= old[row] then vim.api.nvim_buf_set_lines(buffer, row - 1, row, false, { line }) end
  end
  vim.api.nvim_buf_set_lines(buffer, math.max(1, #lines), -1, false, {})
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

---Replaces the lines of a buffer with highlighted ones.
---@param buffer integer
---@param lines mcp_sidecar.Line[]
function M.paint(buffer, lines)
  local texts = vim.tbl_map(function(line) return (style.text(line):gsub("%s+$", "")) end, lines)
  M.set_lines(buffer, texts)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  for row, line in ipairs(lines) do
    local from = 0
    for _, chunk in ipairs(line) do
      local to = math.min(from + #chunk[1], #texts[row])
      local mark = chunk[2] and { end_col = to, hl_group = chunk[2] }
      if mark and to > from then vim.api.nvim_buf_set_extmark(buffer, namespace, row - 1, from, mark) end
      from = to
    end
    if line.group then vim.api.nvim_buf_set_extmark(buffer, namespace, row - 1, 0, { line_hl_group = line.group }) end
  end
end

---A winbar with a title on the left and keys on the right: all keys, the first and the last one, or none, depending on
---the width. The text is escaped.
---@param chunks mcp_sidecar.Chunk[]
---@param keys { [1]: string, [2]: string, [3]?: string }[] the key, its label, and the label's highlight group
---@return string
function M.winbar(chunks, keys)
  local left, width = {}, 2
  for _, chunk in ipairs(chunks) do
    local literal = chunk[1]:gsub("%%", "%%%%"):gsub("%c+", " ")
    table.insert(left, ("%%#%s#%s"):format(chunk[2] or "McpMuted", literal))
    width = width + vim.api.nvim_strwidth(chunk[1])
  end
  local function hints(list)
    local text, room = "", width
    for _, key in ipairs(list) do
      text = text .. ("%%#McpKey# %s%%#%s# %s"):format(key[1], key[3] or "McpMuted", key[2])
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

---@class mcp_sidecar.Key one or more keys, separated by blanks, and their action
---@field [1] string
---@field [2] string|fun()
---@field [3] string description
---@field mode? string|string[]

---Maps keys, and `?` to a list of them: in two columns if there are many.
---@param buffer integer
---@param title string
---@param keys mcp_sidecar.Key[]
---@param notes? string[] further lines of the help
function M.keys(buffer, title, keys, notes)
  local entries = {}
  for _, key in ipairs(keys) do
    for name in vim.gsplit(key[1], " ") do
      M.map(buffer, key.mode or "n", name, key[2], key[3])
    end
    table.insert(entries, ("`%s`%s %s"):format(key[1], (" "):rep(6 - #key[1]), key[3]))
  end
  table.insert(entries, "`q`      close")
  local function help()
    local half = #entries > 12 and vim.o.columns >= 76 and math.ceil(#entries / 2) or #entries
    local lines = {}
    for place = 1, half do
      local other = entries[place + half]
      -- The backquotes are concealed, but they count for the width.
      lines[place] = other and style.pad(entries[place], 38) .. "  " .. other or entries[place]
    end
    M.peek(vim.list_extend(lines, notes or {}), title)
  end
  M.map(buffer, "n", "?", help, "help")
  M.map(buffer, "n", "g?", help, "help")
end

---Copies text to the unnamed register and the clipboard.
---@param text string|string[]
function M.yank(text)
  vim.fn.setreg('"', text)
  pcall(vim.fn.setreg, "+", text)
end

---Lets the user pick an item; `done` runs only if they do.
---@generic T
---@param items T[]
---@param opts { prompt: string, kind?: string, format?: (fun(item: T): string), none?: string } none: message if there are no items
---@param done fun(item: T)
function M.choose(items, opts, done)
  if #items == 0 and opts.none then return vim.notify(opts.none, vim.log.levels.WARN, { title = "mcp-sidecar" }) end
  local format = opts.format or tostring
  local select = {
    prompt = opts.prompt,
    kind = opts.kind,
    format_item = function(item) return style.fit(format(item), vim.o.columns - 6) end,
  }
  vim.ui.select(items, select, function(item)
    if item ~= nil then done(item) end
  end)
end

---A popup with markdown in the middle of the screen. Leaving it closes it.
---@param lines string[] each may contain line breaks
---@param title string
function M.peek(lines, title)
  local from = vim.api.nvim_get_current_win()
  lines = vim.split(table.concat(lines, "\n"), "\n")
  local width = vim
    .iter(lines)
    :fold(20, function(most, line) return math.max(most, vim.api.nvim_strwidth(line) + 2) end)
  width = math.min(width, vim.o.columns - 4)
  local height = math.min(M.height(lines, width), vim.o.lines - 6)
  local buffer = M.buffer(nil, "markdown")
  M.set_lines(buffer, lines)
  local window = M.float(buffer, true, "McpMuted", {
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 2),
    col = math.max(0, math.floor((vim.o.columns - width) / 2) - 1),
    width = width,
    height = height,
    -- Above the prompt, whose help it may show.
    zindex = 250,
    title = " " .. style.fit(title, width - 4) .. " ",
  })
  pcall(vim.treesitter.start, buffer, "markdown")
  vim.wo[window].conceallevel = 2
  vim.wo[window].concealcursor = "n"
  -- Neovim itself returns to no window that is not focusable, as the prompt then is.
  local function close()
    if vim.api.nvim_win_is_valid(from) then vim.api.nvim_set_current_win(from) end
    pcall(vim.api.nvim_win_close, window, true)
  end
  for _, key in ipairs({ "q", "<Esc>", "<CR>" }) do
    M.map(buffer, "n", key, close, "close")
  end
  vim.api.nvim_create_autocmd("WinLeave", {
    buffer = buffer,
    once = true,
    callback = function() pcall(vim.api.nvim_win_close, window, true) end,
  })
end

---Adds a value as a JSON code block.
---@param lines string[]
---@param value any
---@return string[] lines
function M.add_json(lines, value)
  table.insert(lines, "```json")
  vim.list_extend(lines, require("mcp_sidecar.json").lines(value))
  return vim.list_extend(lines, { "```" })
end

return M
