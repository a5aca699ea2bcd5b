--- Actions on a server. The sidecar decides which ones are possible now; this module performs them, for
--- `:Mcp {action}`, the keys of the dashboard, remedies and code lenses.

local client = require("mcp_sidecar.client")
local style = require("mcp_sidecar.ui.style")
local user_actions = require("mcp_sidecar.user_actions")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@class mcp_sidecar.NamedAction
---@field [integer] mcp_sidecar.ActionKind
---@field none string what to say about a server that offers none of these kinds

---The actions by their names in `:Mcp`.
---@type table<string, mcp_sidecar.NamedAction>
M.named = {
  start = { "start", none = "cannot be started" },
  stop = { "stop", none = "cannot be stopped" },
  restart = { "restart", none = "cannot be restarted" },
  refresh = { "refresh", none = "cannot be refreshed" },
  toggle = { "show-tools", "hide-tools", none = "has no tools to show or hide" },
  trust = { "trust", none = "cannot be trusted" },
  distrust = { "revoke-trust", none = "has no trust to revoke" },
  auth = { "sign-in", none = "cannot be signed in to" },
  signout = { "sign-out", none = "cannot be signed out of" },
  enable = { "enable", none = "cannot be enabled" },
  disable = { "disable", none = "cannot be disabled" },
  logs = { "show-log", none = "has no log" },
  test = { "test", none = "cannot be tested" },
  remove = { "remove", none = "cannot be removed" },
  move = { "move", none = "cannot be moved" },
}

---Sends a command that starts a server: a question about its trust or its inputs may follow.
---@return fun(params: table)
local function starts(command)
  return function(params)
    if params.server then user_actions.add({ server = params.server }) end
    client.command(command, params)
  end
end

---Commands that do more than to send themselves: most have a window of the plugin.
---@type table<string, fun(params: table)>
M.handlers = {
  ["mcp.server.start"] = starts("mcp.server.start"),
  ["mcp.server.restart"] = starts("mcp.server.restart"),
  ["mcp.server.enable"] = starts("mcp.server.enable"),
  ["mcp.server.logs"] = function(params) require("mcp_sidecar.ui.logs").open(params.server) end,
  ["mcp.server.test"] = function(params) require("mcp_sidecar.ui.result").test(params) end,
  ["mcp.server.trust"] = function(params)
    if params.trusted ~= false then return require("mcp_sidecar.ui.approval").trust(params.server) end
    client.command("mcp.server.trust", params)
  end,
  ["mcp.server.auth"] = function(params)
    if not params.signOut then return require("mcp_sidecar.ui.sign_in").start(params.server) end
    client.command("mcp.server.auth", params)
  end,
  ["mcp.servers"] = function(params) require("mcp_sidecar.ui.dashboard").open("servers", nil, params.server) end,
  ["mcp.approval.show"] = function(params) require("mcp_sidecar.ui.approval").focus(params.id) end,
  ["mcp.tool.open"] = function(params) require("mcp_sidecar.ui.call").start(params.tool) end,
  ["mcp.tool.call"] = function(params)
    require("mcp_sidecar.ui.call").start(params.tool, { arguments = params.arguments })
  end,
  ["mcp.action.run"] = function(params)
    if not params.action then return require("mcp_sidecar.ui.call").pick_for(params.uri, params.range) end
    -- The sidecar puts the result where the action says; only a failure is reported here.
    client.command("mcp.action.run", params)
  end,
}

---Performs an action or a remedy as the sidecar describes it.
---@param action mcp_sidecar.Action|mcp_sidecar.Remedy
function M.perform(action)
  local handler = M.handlers[action.command]
  if handler then return handler(action.arguments) end
  client.command(action.command, action.arguments)
end

---The first kind of action that a server offers. Several actions of that kind differ in their arguments.
---@param server mcp_sidecar.ServerStatus
---@param kinds mcp_sidecar.ActionKind[]|mcp_sidecar.NamedAction
---@return mcp_sidecar.Action[]
function M.offered(server, kinds)
  local first = vim.iter(server.actions):find(function(action) return vim.list_contains(kinds, action.kind) end)
  return vim.tbl_filter(function(action) return first ~= nil and action.kind == first.kind end, server.actions)
end

---Performs the action with this name, if the server offers it now.
---@param server mcp_sidecar.ServerStatus
---@param name string
---@param instead? string performed when the server does not offer the first one
function M.run(server, name, instead)
  local named = M.named[name]
  local offered = M.offered(server, named)
  if #offered == 0 and instead then offered = M.offered(server, M.named[instead]) end
  local function perform(action)
    local question = ("`%s`: %s?"):format(server.name, action.title)
    if action.destructive and vim.fn.confirm(question, "&Cancel\n&" .. action.title, 1) ~= 2 then return end
    M.perform(action)
  end
  if #offered == 0 then
    local text = ("`%s` %s now (%s)"):format(server.name, named.none, server.summary.text)
    return client.warn(style.fit(text, vim.o.columns - 12))
  end
  if #offered == 1 then return perform(offered[1]) end
  local prompt = ("`%s`: "):format(server.name)
  windows.choose(offered, { prompt = prompt, format = function(action) return action.title end }, perform)
end

return M
