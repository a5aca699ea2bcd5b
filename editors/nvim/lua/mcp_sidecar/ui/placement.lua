--- Where the prompt is on the screen: next to the user's work while it is not focused, at the bottom when it is.

local M = {}

local BORDER = 2

---The row of the cursor on the screen, counted from 1; 0 when it is not visible.
local function cursor_row() return vim.fn.screenpos(0, vim.fn.line("."), vim.fn.col(".")).row end

---The rows of the screen that windows use: the first, and the one after the last, counted from 0.
---@return integer top, integer bottom
local function usable_rows()
  local tabline = vim.o.showtabline == 2 or (vim.o.showtabline == 1 and vim.fn.tabpagenr("$") > 1)
  return tabline and 1 or 0, vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0)
end

function M.width() return math.max(20, math.min(100, vim.o.columns - 4)) end

---Whether a float covers the line of the cursor.
---@param float vim.api.keyset.win_config
function M.covers_cursor(float)
  local cursor, row = cursor_row(), float.row --[[@as integer]]
  return cursor > row and cursor <= row + (float.height or 0) + BORDER
end

---@param height integer rows that the text needs
---@param focused boolean
---@return vim.api.keyset.win_config? float nil when there is no room beside the cursor
---@return integer cut rows of the text that do not fit
function M.place(height, focused)
  local top, bottom = usable_rows()
  local room, at_top = bottom - top - BORDER, false
  if not focused then
    local cursor = cursor_row()
    local above, below = cursor - 2 - top - BORDER, bottom - cursor - 1 - BORDER
    if cursor > 0 then
      at_top = below < math.min(height, 8) and above > below
      room = at_top and above or below
    end
    room = math.min(room, math.max(8, math.floor(vim.o.lines / 3)))
  end
  local shown = math.min(height, room)
  if shown < 1 then return nil, height end
  return {
    relative = "editor",
    width = M.width(),
    height = shown,
    row = at_top and top or bottom - shown - BORDER,
    col = math.max(0, math.floor((vim.o.columns - M.width()) / 2) - 1),
    -- A completion menu, which has 100, is above a prompt that is not focused.
    zindex = focused and 200 or 90,
    focusable = focused,
  },
    height - shown
end

return M
