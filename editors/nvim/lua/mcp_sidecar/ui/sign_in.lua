--- A running sign-in: shows the page that the user opens in a browser. If the browser is on another machine, as
--- with SSH, it cannot load the last page, and the user pastes the address of that page here. That address contains a code,
--- so it is only passed on: it is not shown, and no history or log gets it.

local client = require("mcp_sidecar.client")
local user_actions = require("mcp_sidecar.user_actions")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@class mcp_sidecar.SignIn
---@field server string
---@field buffer integer
---@field page? string to open in the browser
---@field asks boolean whether the user is typing the address
---@field over boolean
---@field cancel fun()

---@type table<string, mcp_sidecar.SignIn?> by server
local under_way = {}

local HINT = {
  "If your browser is on another machine, as with SSH, it cannot load the last page, whose address begins with",
  "http://127.0.0.1. Copy that address there, press <CR> here, and paste it.",
}

---@param sign_in mcp_sidecar.SignIn
local function draw(sign_in)
  local page = sign_in.page or "…"
  local lines = { "Continue in your browser. If it did not open, open this page:", "", page, "", HINT[1], HINT[2] }
  windows.set_lines(sign_in.buffer, lines)
end

---Asks for the address until one is accepted or the user cancels the input.
---@param sign_in mcp_sidecar.SignIn
local function paste(sign_in)
  if sign_in.asks then return end
  sign_in.asks = true
  -- Unlike `vim.ui.input`, this shows nothing and keeps no history.
  local ok, address = pcall(vim.fn.inputsecret, ("Address of the last page (%s): "):format(sign_in.server))
  sign_in.asks = false
  if not ok or vim.trim(address) == "" or sign_in.over then return end
  client.command("mcp.server.auth.paste", { server = sign_in.server, address = address }, function(err)
    if not err or sign_in.over then return end
    client.error(err)
    paste(sign_in)
  end)
end

---@param sign_in mcp_sidecar.SignIn
local function finish(sign_in)
  sign_in.over = true
  if under_way[sign_in.server] == sign_in then under_way[sign_in.server] = nil end
  -- Closes an input that nothing waits for any more.
  if sign_in.asks and vim.fn.mode() == "c" then vim.api.nvim_input("<C-c>") end
  local window = vim.fn.bufwinid(sign_in.buffer)
  if window ~= -1 then vim.api.nvim_win_call(window, windows.close) end
end

---Signs in to a server. Closing the window cancels the sign-in.
---@param server string
function M.start(server)
  local before = under_way[server]
  if before then finish(before) end
  user_actions.add({ server = server })
  local buffer = windows.buffer("mcp-sign-in://" .. server, "text")
  ---@type mcp_sidecar.SignIn
  local sign_in = { server = server, buffer = buffer, asks = false, over = false, cancel = function() end }
  under_way[server] = sign_in
  draw(sign_in)
  windows.keys(buffer, "sign in", {
    { "<CR>", function() paste(sign_in) end, "paste the address of the last page" },
    { "y", function() vim.fn.setreg("+", sign_in.page or "") end, "copy the address of the first page" },
  })
  local keys = { { "<CR>", "paste the address" }, { "y", "copy the page" }, { "q", "cancel" } }
  local bar = windows.winbar({ { (" Sign in to `%s`"):format(server), "McpTitle" } }, keys)
  -- Replacing the window of another sign-in would cancel that one.
  windows.show(buffer, { winbar = bar, wrap = true, rows = 12, beside = true })
  windows.on_close(buffer, {
    back = function() end,
    closed = function()
      if not sign_in.over then sign_in.cancel() end
    end,
  })
  sign_in.cancel = client.command("mcp.server.auth", { server = server }, function(err)
    finish(sign_in)
    if err then return client.error(err) end
    client.info(("Signed in to `%s`"):format(server))
  end)
end

---Shows the page of a sign-in that was started here.
---@param server string
---@param page string
function M.show(server, page)
  local sign_in = under_way[server]
  if not sign_in then return end
  sign_in.page = page
  draw(sign_in)
end

---Whether a sign-in shows this page.
---@param page string
---@return boolean
function M.shows(page)
  return vim.iter(vim.tbl_values(under_way)):any(function(each) return each.page == page end)
end

return M
