--- Starts the sidecar again after a crash: after a moment, then a longer one, and after three in a minute not at all.

local client = require("mcp_sidecar.client")

local FIRST_WAIT_MS = 250
local LIMIT, WINDOW_MS = 3, 60000

---@type integer[] when the last crashes were
local crashes = {}

client.on("exit", function(ended)
  if not ended.crashed or not ended.root or vim.v.exiting ~= vim.NIL then return end
  local now = vim.uv.now()
  crashes = vim.tbl_filter(function(time) return now - time < WINDOW_MS end, crashes)
  table.insert(crashes, now)
  if #crashes >= LIMIT then
    crashes = {}
    return client.info(
      "the sidecar ended three times within a minute and stays down; `:Mcp log` tells why, `:Mcp up` tries again",
      vim.log.levels.ERROR
    )
  end
  local wait = #crashes == 1 and FIRST_WAIT_MS or 4 * FIRST_WAIT_MS
  client.info(("the sidecar ended unexpectedly; starting it again in %.2g s"):format(wait / 1000), vim.log.levels.WARN)
  vim.defer_fn(function()
    if vim.v.exiting == vim.NIL and not client.current() then client.start_again(ended.root) end
  end, wait)
end)
