--- Restarts the sidecar after a crash, each time after a longer delay. Gives up after three crashes in a minute.

local client = require("mcp_sidecar.client")

local FIRST_WAIT_MS = 250
local LIMIT, WINDOW_MS = 3, 60000

---@type integer[] times of the last crashes
local crashes = {}

client.on("exit", function(ended)
  if not ended.crashed or not ended.root or vim.v.exiting ~= vim.NIL then return end
  local now = vim.uv.now()
  crashes = vim.tbl_filter(function(time) return now - time < WINDOW_MS end, crashes)
  table.insert(crashes, now)
  if #crashes >= LIMIT then
    crashes = {}
    return client.info(
      "the sidecar crashed three times within a minute and is not restarted; see `:Mcp log`, retry with `:Mcp up`",
      vim.log.levels.ERROR
    )
  end
  local wait = #crashes == 1 and FIRST_WAIT_MS or 4 * FIRST_WAIT_MS
  client.info(("the sidecar crashed; restarting it in %.2g s"):format(wait / 1000), vim.log.levels.WARN)
  vim.defer_fn(function()
    if vim.v.exiting == vim.NIL and not client.current() then client.start_again(ended.root) end
  end, wait)
end)
