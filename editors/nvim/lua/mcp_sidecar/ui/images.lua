--- Pictures in the terminal. With the graphics protocol of kitty, placeholder characters below the link stand for the
--- parts of a picture, so Neovim scrolls and clears it like text. With sixel, a picture is drawn over the screen until the
--- next key.

local config = require("mcp_sidecar.config")

local M = {}

-- The size of a cell in pixels, about: Neovim does not know it.
local CELL = { width = 9, height = 18 }
local MOST_COLUMNS, MOST_ROWS = 60, 20
-- The protocol limits the size of a part.
local PART = 4096
local PLACEHOLDER = vim.fn.nr2char(0x10EEEE)
-- The combining characters that number the rows of a picture.
-- stylua: ignore
local DIACRITICS = {
  0x305, 0x30D, 0x30E, 0x310, 0x312, 0x33D, 0x33E, 0x33F, 0x346, 0x34A, 0x34B, 0x34C, 0x350, 0x351, 0x352, 0x357, 0x35B,
  0x363, 0x364, 0x365,
}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_images")
local last_id = 0

---Programs that turn a picture into sixels.
---@type fun(path: string, width: integer, height: integer)[]
local encoders = {
  function(path, width) return { "img2sixel", "--width=" .. width, path } end,
  function(path, width, height) return { "magick", path, "-resize", ("%dx%d>"):format(width, height), "sixel:-" } end,
  function(path) return { "chafa", "--format=sixels", ("--size=%dx%d"):format(MOST_COLUMNS, MOST_ROWS), path } end,
}

local function encoder()
  return vim.iter(encoders):find(function(each) return vim.fn.executable(each("", 0, 0)[1]) == 1 end)
end

---How this terminal shows pictures.
---@return "kitty"|"sixel"|"none"
function M.protocol()
  local wanted = config.get().images
  if wanted ~= "auto" then
    return wanted --[[@as "kitty"|"sixel"|"none"]]
  end
  local terminal = ("%s %s"):format(vim.env.TERM or "", vim.env.TERM_PROGRAM or ""):lower()
  local in_terminal = vim.iter(vim.api.nvim_list_uis()):any(function(ui) return ui.stdout_tty end)
  if not in_terminal then return "none" end
  if vim.env.KITTY_WINDOW_ID or terminal:find("kitty") or terminal:find("ghostty") then return "kitty" end
  local sixel = terminal:find("^foot") or terminal:find("wezterm") or terminal:find("mlterm") or vim.env.WT_SESSION
  return sixel and encoder() and "sixel" or "none"
end

---Sends a sequence to the terminal. tmux passes it on only if it is wrapped.
---@param sequence string
function M.send(sequence)
  if vim.env.TMUX then sequence = "\27Ptmux;" .. sequence:gsub("\27", "\27\27") .. "\27\\" end
  if vim.api.nvim_ui_send then return vim.api.nvim_ui_send(sequence) end
  vim.api.nvim_chan_send(2, sequence)
end

---@param path string
---@return string?
local function read(path)
  local file = io.open(path, "rb")
  local bytes = file and file:read("*a")
  if file then file:close() end
  return bytes
end

---The size of a PNG in pixels.
---@param bytes string
---@return integer? width, integer? height
local function size_of(bytes)
  if bytes:sub(1, 8) ~= "\137PNG\r\n\26\n" or #bytes < 24 then return end
  local function number(at)
    local a, b, c, d = bytes:byte(at, at + 3)
    return ((a * 256 + b) * 256 + c) * 256 + d
  end
  return number(17), number(21)
end

---The cells that a picture takes, with its proportions.
---@return integer columns, integer rows
local function cells(width, height)
  local columns = math.min(MOST_COLUMNS, math.ceil(width / CELL.width))
  local rows = math.max(1, math.ceil(columns * CELL.width * height / width / CELL.height))
  if rows > MOST_ROWS then
    columns, rows = math.max(1, math.floor(columns * MOST_ROWS / rows)), MOST_ROWS
  end
  return columns, rows
end

---Sends a picture to the terminal, to be shown where its placeholders are.
local function transmit(bytes, id, columns, rows)
  local data, first = vim.base64.encode(bytes), true
  for from = 1, #data, PART do
    local part, more = data:sub(from, from + PART - 1), from + PART <= #data and 1 or 0
    local about = first and ("a=T,U=1,q=2,f=100,t=d,i=%d,c=%d,r=%d,m=%d"):format(id, columns, rows, more)
      or ("q=2,m=%d"):format(more)
    M.send(("\27_G%s;%s\27\\"):format(about, part))
    first = false
  end
end

---Shows a PNG below a line.
---@param buffer integer
---@param row integer from 0
---@param path string
local function place(buffer, row, path)
  local bytes = read(path)
  local width, height = size_of(bytes or "")
  if not (bytes and width and height and width > 0 and height > 0) then return end
  local columns, rows = cells(width, height)
  last_id = last_id % 255 + 1
  -- The colour of a placeholder is the number of its picture.
  local group = "McpImage" .. last_id
  vim.api.nvim_set_hl(0, group, { fg = ("#%06x"):format(last_id), ctermfg = last_id })
  transmit(bytes, last_id, columns, rows)
  local lines = {}
  for number = 1, rows do
    local line = assert(DIACRITICS[number])
    local first = PLACEHOLDER .. vim.fn.nr2char(line) .. vim.fn.nr2char(DIACRITICS[1])
    lines[number] = { { first .. PLACEHOLDER:rep(columns - 1), group } }
  end
  vim.api.nvim_buf_set_extmark(buffer, namespace, row, 0, { virt_lines = lines })
end

---Draws the pictures of a buffer, if this terminal can show them in the text.
---@param buffer integer
---@param pictures { row: integer, path: string }[]
function M.draw(buffer, pictures)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  if M.protocol() ~= "kitty" then return end
  for _, picture in ipairs(pictures) do
    place(buffer, picture.row, picture.path)
  end
end

---Draws a picture over the screen, until the next key.
---@param path string
---@return boolean drawn false if this terminal cannot
function M.show(path)
  local encode = M.protocol() == "sixel" and encoder()
  if not encode then return false end
  local columns = math.min(MOST_COLUMNS, vim.o.columns - 4)
  local rows = math.min(MOST_ROWS, vim.o.lines - 4)
  local done = vim.system(encode(path, columns * CELL.width, rows * CELL.height)):wait(10000)
  if done.code ~= 0 or not done.stdout then return false end
  vim.cmd.redraw()
  -- The cursor goes back to where it was.
  M.send(("\27[s\27[2;3H%s\27[u"):format(done.stdout))
  pcall(vim.fn.getcharstr)
  vim.cmd.mode()
  return true
end

return M
