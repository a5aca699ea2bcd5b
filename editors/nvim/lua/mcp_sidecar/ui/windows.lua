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
function M.window_of(name)
  local window = vim.fn.bufwinid(M.find(name) or -1)
  return window ~= -1 and window or nil
end

---Closes the current window; the last one gets an empty buffer instead.
function M.close()
  if not pcall(vim.api.nvim_win_close, 0, true) then vim.cmd.enew() end
end

---Sets several options of a buffer or a window.
---@param options table<string, any> such as `vim.bo[buffer]`
---@param values table<string, any>
function M.set(options, values)
  for option, value in pairs(values) do
    options[option] = value
  end
end

---Sets the type of a buffer. A plugin for this type may fail, which must not hide the text from the user.
---@param buffer integer
---@param filetype string
function M.set_filetype(buffer, filetype)
  if vim.bo[buffer].filetype == filetype then return end
  vim.api.nvim_buf_call(buffer, function() vim.cmd("silent! setlocal filetype=" .. filetype) end)
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
  M.set(vim.bo[buffer], { buftype = "nofile", bufhidden = "wipe", swapfile = false, modeline = false })
  M.set_filetype(buffer, filetype)
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

---What kind of window a buffer needs: the scheme of its name.
---@param buffer integer
local function kind_of(buffer)
  return vim.api.nvim_buf_get_name(buffer):match("^mcp[%l-]*://") --[[@as string?]]
end

---A window with a buffer of one of these kinds: a second form replaces the first.
---@param kinds string[]
---@return integer?
local function window_of_kind(kinds)
  return vim
    .iter(vim.api.nvim_tabpage_list_wins(0))
    :find(function(window) return vim.list_contains(kinds, kind_of(vim.api.nvim_win_get_buf(window))) end)
end

---The border of floats: the user's, else ours. One that has no room for a title becomes an empty one.
---@param own any
function M.border(own)
  local given = vim.fn.exists("+winborder") == 1 and vim.o.winborder or ""
  if given == "" then return own end
  if given == "none" then return "solid" end
  return given:find(",", 1, true) and vim.split(given, ",") or given
end

---Whether there is no room for a form and its result side by side. Each then replaces the other.
function M.is_narrow() return vim.o.columns < 100 end

local function open_float(buffer)
  local width, height = math.floor(vim.o.columns * 0.9), math.floor(vim.o.lines * 0.8)
  return vim.api.nvim_open_win(buffer, true, {
    relative = "editor",
    border = M.border("rounded"),
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 2),
    col = math.max(0, math.floor((vim.o.columns - width) / 2) - 1),
    -- Below the prompt, and below a completion menu.
    zindex = 40,
  })
end

---Opens a window as the user's option says.
---@param buffer integer
---@param mods table
---@param rows? integer that it needs
---@return integer window
local function open_window(buffer, mods, rows)
  local placed = mods.vertical or (mods.tab or -1) >= 0 or (mods.split or "") ~= ""
  local wanted = not placed and require("mcp_sidecar.config").get().window
  if wanted == "float" then return open_float(buffer) end
  -- A float cannot be split.
  if vim.api.nvim_win_get_config(0).relative ~= "" then vim.cmd.wincmd("t") end
  if wanted == "tab" and not kind_of(vim.api.nvim_get_current_buf()) then
    vim.cmd.split({ mods = { tab = vim.fn.tabpagenr() } })
    return vim.api.nvim_get_current_win()
  end
  local default = { split = "botright", vertical = wanted == "vsplit" or nil }
  local beside = kind_of(vim.api.nvim_get_current_buf()) ~= nil
  vim.cmd.split({ mods = placed and mods or default })
  local window = vim.api.nvim_get_current_win()
  if not placed and not default.vertical then
    -- No more than it needs, so that the windows above stay useful: the user's, and perhaps another one of the plugin.
    local most = math.max(10, math.floor(vim.o.lines * 0.6))
    local usual = beside and math.floor(vim.o.lines * 0.4) or most
    vim.api.nvim_win_set_height(window, math.min(most, math.max(8, rows or usual)))
  end
  return window
end

---Shows a buffer in a window of its kind, or in a new one.
---@param buffer integer
---@param opts? { mods?: table, winbar?: string, wrap?: boolean, instead?: string, beside?: boolean, rows?: integer } mods: as
---nvim_create_user_command gives them. instead: another kind of window that it may replace. beside: it replaces none. rows: that
---it needs
---@return integer window
function M.show(buffer, opts)
  opts = opts or {}
  local shown = vim.fn.bufwinid(buffer)
  local replaced = not opts.beside and window_of_kind({ kind_of(buffer), opts.instead }) or nil
  local window = shown ~= -1 and shown or replaced or open_window(buffer, opts.mods or {}, opts.rows)
  vim.api.nvim_set_current_win(window)
  if vim.api.nvim_win_get_buf(window) ~= buffer or shown == -1 then
    vim.api.nvim_win_set_buf(window, buffer)
    M.set(vim.wo[window][0], plain_window)
  end
  if opts.wrap ~= nil then vim.wo[window].wrap = opts.wrap end
  if opts.winbar then vim.wo[window].winbar = opts.winbar end
  return window
end

---Opens a file at a line, in the window that the user came from.
---@param path string
---@param line? integer from 0
function M.edit(path, line)
  if vim.api.nvim_win_get_config(0).relative ~= "" then M.close() end
  vim.cmd.wincmd("p")
  if vim.bo.buftype ~= "" then vim.cmd.split() end
  vim.cmd.edit({ args = { path }, magic = { file = false } })
  vim.api.nvim_win_set_cursor(0, { math.min((line or 0) + 1, vim.api.nvim_buf_line_count(0)), 0 })
end

---Opens a float with a border in this highlight group.
---@param buffer integer
---@param enter boolean
---@param frame string highlight group
---@param place vim.api.keyset.win_config
---@return integer window
function M.float(buffer, enter, frame, place)
  local defaults =
    { relative = "editor", border = M.border("rounded"), style = "minimal", noautocmd = not enter or nil }
  local window = vim.api.nvim_open_win(buffer, enter, vim.tbl_extend("keep", place, defaults))
  local groups = ("NormalFloat:Normal,FloatBorder:%s,FloatTitle:McpTitle"):format(frame)
  M.set(vim.wo[window], { wrap = true, linebreak = true, breakindent = true, winhighlight = groups })
  vim.wo[window].fillchars = "eob: ,lastline: "
  return window
end

---The number of screen rows of some lines when they are wrapped.
---@param lines string[]
---@param width integer
---@param indent? integer of the rows after the first
function M.height(lines, width, indent)
  local function rows(sum, line)
    local wide = vim.api.nvim_strwidth(line)
    return sum + (wide <= width and 1 or math.ceil(wide / (width - (indent or 0))))
  end
  return vim.iter(lines):fold(0, rows)
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

---A winbar with a title and notes on the left, and keys on the right: as many of the first ones as there is room for, and
---the last one. Without room for three keys beside them, the notes are left out. The text is escaped.
---@param title mcp_sidecar.Chunk[]
---@param keys { [1]: string, [2]: string, [3]?: string }[] the key, its label, and the label's highlight group
---@param notes? mcp_sidecar.Chunk[]
function M.winbar(title, keys, notes)
  local function left(chunks)
    local parts, width = {}, 0
    for _, chunk in ipairs(chunks) do
      local literal = chunk[1]:gsub("%%", "%%%%"):gsub("%c+", " ")
      table.insert(parts, ("%%#%s#%s"):format(chunk[2] or "McpMuted", literal))
      width = width + vim.api.nvim_strwidth(chunk[1])
    end
    return table.concat(parts), width
  end
  local function hints(count, room)
    local text, shown = "", vim.list_slice(keys, 1, count)
    shown[count] = keys[#keys]
    for _, key in ipairs(shown) do
      text = text .. ("%%#McpKey# %s%%#%s# %s"):format(key[1], key[3] or "McpMuted", key[2])
      room = room + #key[1] + #key[2] + 2
    end
    return ("winwidth(0) >= %d ? '%s'"):format(room, text), room
  end
  local name, width = left(title)
  local beside, notes_width = left(notes or {})
  local choices = {}
  local fewest = math.min(3, #keys)
  for count = #keys, fewest, -1 do
    table.insert(choices, (hints(count, width + notes_width + 2)))
  end
  for count = #keys, 1, -1 do
    table.insert(choices, (hints(count, width + 2)))
  end
  table.insert(choices, "''")
  local _, room = hints(fewest, width + notes_width + 2)
  beside = ("%%{%%winwidth(0) >= %d ? '%s' : ''%%}"):format(room, (beside:gsub("'", "''")))
  return name .. beside .. "%#McpMuted#%<%=%{%" .. table.concat(choices, " : ") .. "%} "
end

---@param buffer integer
---@param mode string|string[]
---@param keys string
---@param run string|function
---@param desc string
function M.map(buffer, mode, keys, run, desc)
  vim.keymap.set(mode, keys, run, { buffer = buffer, nowait = true, silent = true, desc = desc })
end

---@class mcp_sidecar.Covering a window that hides another one
---@field closed fun() runs after it was closed
---@field back fun() goes back to the other one

---Runs something after a buffer is gone; `q` also goes back.
---@param buffer integer
---@param cover mcp_sidecar.Covering
function M.on_close(buffer, cover)
  M.map(buffer, "n", "q", function()
    M.close()
    cover.back()
  end, "close")
  vim.api.nvim_create_autocmd("BufWipeout", { buffer = buffer, once = true, callback = function() cover.closed() end })
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

-- The width of the names in a list to pick from.
local LONGEST_NAME = 32

---Lets the user pick an item; `done` runs only if they do.
---@generic T
---@param items T[]
---@param opts { prompt: string, kind?: string, format?: (fun(item: T): string, string?), none?: string } format: the text, or
---a name and what it is, which become columns. none: message if there are no items
---@param done fun(item: T)
function M.choose(items, opts, done)
  if #items == 0 and opts.none then return vim.notify(opts.none, vim.log.levels.WARN, { title = "mcp-sidecar" }) end
  local format = opts.format or tostring
  local function wider(most, item) return math.max(most, vim.api.nvim_strwidth((format(item)))) end
  local width = math.min(LONGEST_NAME, vim.iter(items):fold(0, wider))
  local function line(item)
    local name, about = format(item)
    return style.fit(about and style.pad(name, width) .. "  " .. about or name, vim.o.columns - 6)
  end
  local select = { prompt = opts.prompt, kind = opts.kind, format_item = line }
  vim.ui.select(items, select, function(item)
    if item ~= nil then done(item) end
  end)
end

---A popup with markdown in the middle of the screen. Leaving it closes it.
---@param lines string[] each may contain line breaks
---@param title string
---@param none? string shown when there are no lines
function M.peek(lines, title, none)
  local from = vim.api.nvim_get_current_win()
  lines = vim.split(#lines > 0 and table.concat(lines, "\n") or none or "", "\n")
  local function wider(most, line) return math.max(most, vim.api.nvim_strwidth(line) + 2) end
  local width = math.min(vim.iter(lines):fold(20, wider), vim.o.columns - 4)
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
