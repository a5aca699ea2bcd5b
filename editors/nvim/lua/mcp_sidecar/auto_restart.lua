--- Restarts the sidecar after a crash, with one message: at once the first time, later after a pause. Gives up after
--- three crashes in a minute.

local client = require("mcp_sidecar.client")

local PAUSE_MS = 1000
local LIMIT, WINDOW_MS = 3, 60000

---@type integer[] times of the last crashes
local crashes = {}

---Short enough for one line: a longer message would stop the user until a key is pressed.
---@param lost integer calls that were running
local function message(lost)
  local calls = lost == 1 and " (a call was lost)" or lost > 1 and (" (%d calls were lost)"):format(lost) or ""
  return ("mcp-sidecar crashed and restarted%s: `:Mcp log`"):format(calls)
end

client.on("exit", function(ended)
  if not ended.crashed or not ended.root or vim.v.exiting ~= vim.NIL then return end
  local now = vim.uv.now()
  crashes = vim.tbl_filter(function(time) return now - time < WINDOW_MS end, crashes)
  table.insert(crashes, now)
  if #crashes >= LIMIT then
    crashes = {}
    return client.info("mcp-sidecar keeps crashing: see `:Mcp log`; use `:Mcp up` to retry", vim.log.levels.ERROR)
  end
  client.warn(message(ended.lost))
  vim.defer_fn(function()
    if vim.v.exiting == vim.NIL and not client.current() then client.start_again(ended.root) end
  end, #crashes == 1 and 0 or PAUSE_MS)
end)
