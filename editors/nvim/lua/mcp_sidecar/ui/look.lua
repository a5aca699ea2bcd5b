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
  warning = { "▲", "!" },
  cut = { "…", "~" },
}

function M.icon(name)
  return icons[name][config.get().icons and 1 or 2]
end

M.status_groups = {
  connected = "McpConnected",
  pending = "McpPending",
  failed = "McpFailed",
  ["needs-auth"] = "McpNeedsAuth",
  stopped = "McpStopped",
  disabled = "McpDisabled",
}

function M.level_group(level)
  if level == "deny" or level == "disable" then
    return "McpDenied"
  end
  return level == "require-approval" and "McpAsks" or "McpAllowed"
end

---What a tool does, in a word, by its own account.
---@return string word, string group
function M.manner(annotations)
  annotations = annotations or {}
  if annotations.readOnly then
    return "reads", "McpMuted"
  elseif annotations.destructive then
    return "destroys", "McpDanger"
  elseif annotations.readOnly == false then
    return "writes", "McpAsks"
  end
  return "", "McpMuted"
end

---Cut to a width on the screen, on one line.
function M.fit(text, width)
  text = tostring(text or ""):gsub("[%c]+", " ")
  if vim.api.nvim_strwidth(text) <= width then
    return text
  end
  local cut = M.icon("cut")
  while text ~= "" and vim.api.nvim_strwidth(text) > width - 1 do
    text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 1)
  end
  return text .. cut
end

---Cut, or filled up with blanks.
function M.pad(text, width)
  text = M.fit(text, width)
  return text .. (" "):rep(width - vim.api.nvim_strwidth(text))
end

---Safe in a statusline, winbar or title: nothing in it is a command.
function M.literal(text)
  return (tostring(text):gsub("%%", "%%%%"):gsub("[%c]+", " "))
end

---A number of milliseconds as a person says it.
function M.duration(ms)
  if not ms then
    return ""
  elseif ms < 10 then
    return ("%.1f ms"):format(ms)
  elseif ms < 1000 then
    return ("%d ms"):format(ms)
  end
  return ("%.1f s"):format(ms / 1000)
end

---The time of day here, of a time in RFC 3339 and UTC.
function M.clock(time)
  local year, month, day, hour, minute, second = (time or ""):match("(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)")
  if not year then
    return ""
  end
  local utc = os.time({ year = year, month = month, day = day, hour = hour, min = minute, sec = second, isdst = false })
  local now = os.time()
  local offset = os.difftime(now, os.time(os.date("!*t", now) --[[@as osdateparam]]))
  return os.date("%H:%M:%S", utc + offset) --[[@as string]]
end

---The buffer with exactly this name: `bufnr()` would take it for a pattern.
---@param name string
---@return integer?
function M.find(name)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buffer) == name then
      return buffer
    end
  end
end

---Closes the current window; the last one gets an empty buffer instead.
function M.close()
  if not pcall(vim.api.nvim_win_close, 0, true) then
    vim.cmd.enew()
  end
end

---A buffer of ours: no file, no modelines, gone when it is not shown.
---@param name string
---@param filetype string
---@return integer buffer
function M.buffer(name, filetype)
  local buffer = M.find(name)
  if not buffer then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
  end
  vim.bo[buffer].buftype = "nofile"
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].modeline = false
  if vim.bo[buffer].filetype ~= filetype then
    vim.bo[buffer].filetype = filetype
  end
  return buffer
end

---Shows a buffer in the window that has it, or in a new one below.
---@param buffer integer
---@param mods? table as nvim_create_user_command gives them
---@return integer window
function M.show(buffer, mods)
  local window = vim.fn.bufwinid(buffer)
  if window == -1 then
    mods = mods or {}
    -- A float cannot be split.
    if vim.api.nvim_win_get_config(0).relative ~= "" then
      vim.cmd.wincmd("t")
    end
    local placed = mods.vertical or (mods.tab or -1) >= 0 or (mods.split or "") ~= ""
    vim.cmd.split({ mods = placed and mods or { split = "botright" } })
    window = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(window, buffer)
    if not placed then
      vim.api.nvim_win_set_height(window, math.max(10, math.floor(vim.o.lines * 0.6)))
    end
    for option, value in pairs({
      number = false,
      relativenumber = false,
      signcolumn = "no",
      foldcolumn = "0",
      list = false,
      spell = false,
      fillchars = "eob: ",
    }) do
      vim.api.nvim_set_option_value(option, value, { scope = "local", win = window })
    end
  end
  vim.api.nvim_set_current_win(window)
  return window
end

---Replaces a buffer's lines, touching only those that differ, so that nothing flickers.
function M.set_lines(buffer, lines)
  local old = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local first, last = 1, 0
  while first <= #lines and first <= #old and lines[first] == old[first] do
    first = first + 1
  end
  while last < #lines - first + 1 and last < #old - first + 1 and lines[#lines - last] == old[#old - last] do
    last = last + 1
  end
  if first > #lines and #lines == #old then
    return
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, first - 1, #old - last, false, vim.list_slice(lines, first, #lines - last))
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

---The keys that a window names in its winbar: all where there is room, else the last, which is help.
---@param keys { [1]: string, [2]: string }[]
function M.hints(keys)
  local shown = vim.tbl_map(function(key)
    return ("%%#McpKey#%s%%#McpMuted# %s "):format(key[1], key[2])
  end, keys)
  return ("%%{%%winwidth(0) >= 80 ? '%s' : '%s'%%}"):format(table.concat(shown), shown[#shown])
end

---@param buffer integer
---@param mode string|string[]
---@param keys string
---@param run function
---@param desc string
function M.map(buffer, mode, keys, run, desc)
  vim.keymap.set(mode, keys, run, { buffer = buffer, nowait = true, silent = true, desc = desc })
end

---A float with markdown in the middle of the screen, for help and details. Leaving it closes it.
---@param lines string[]
---@param opts { title: string }
function M.peek(lines, opts)
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
    col = math.floor((vim.o.columns - width) / 2) - 1,
    width = width,
    height = height,
    border = "rounded",
    style = "minimal",
    title = " " .. opts.title:gsub("%c+", " ") .. " ",
  })
  pcall(vim.treesitter.start, buffer, "markdown")
  vim.wo[window].conceallevel = 2
  vim.wo[window].concealcursor = "n"
  vim.wo[window].wrap = true
  vim.wo[window].linebreak = true
  vim.wo[window].winhighlight = "NormalFloat:Normal,FloatBorder:McpMuted,FloatTitle:McpTitle"
  for _, key in ipairs({ "q", "<Esc>", "<CR>" }) do
    M.map(buffer, "n", key, M.close, "close")
  end
  vim.api.nvim_create_autocmd("WinLeave", {
    buffer = buffer,
    once = true,
    callback = function()
      pcall(vim.api.nvim_win_close, window, true)
    end,
  })
end

return M
