--- `:Mcp {what} {which}`: one table of subcommands, and how each is completed.

local client = require("mcp_sidecar.client")
local look = require("mcp_sidecar.ui.look")

local M = {}

local function servers()
  return vim.tbl_map(function(server) return server.name end, require("mcp_sidecar").servers())
end

local function all_or_servers() return vim.list_extend({ "all" }, servers()) end

local function tools()
  local names = {}
  for _, server in ipairs(require("mcp_sidecar").servers()) do
    for _, tool in ipairs(server.tools or {}) do
      table.insert(names, server.name .. "/" .. tool.name)
    end
  end
  return names
end

local function programs() return require("mcp_sidecar.manage").programs end

local function dashboard(view)
  return function(_, command) require("mcp_sidecar.ui.dashboard").open(view, command.smods) end
end

---Asks for a server where none was named, then runs.
local function with_server(run)
  return function(arguments)
    if arguments[1] then return run(arguments[1], arguments) end
    client.ensure(function(_, problem)
      local names = servers()
      if problem or #names == 0 then return client.complain(problem or "no servers: describe one in mcp.json") end
      look.choose(names, { prompt = "Server: ", kind = "mcp_server" }, run)
    end)
  end
end

---Sends a command for a server, or for all.
local function send(command, extra)
  return with_server(function(server)
    local params = server == "all" and { all = true } or { server = server }
    client.command(command, vim.tbl_extend("force", params, extra or {}))
  end)
end

---Why tools have the levels that they have.
local function explain(policies)
  local lines = {}
  for _, policy in ipairs(policies) do
    table.insert(lines, ("`%s`  **%s**  %s"):format(policy.tool, policy.level, policy.source))
    for _, hidden in ipairs(policy.hides or {}) do
      table.insert(
        lines,
        "  instead of " .. (type(hidden) == "table" and table.concat(vim.tbl_values(hidden), " ") or hidden)
      )
    end
  end
  look.peek(#lines > 0 and lines or { "No such tool." }, "why")
end

---How servers and their tools have done.
local function tell_metrics(servers_now)
  local lines, took = {}, look.duration
  for _, server in ipairs(servers_now) do
    local times = ("up in %s, listed in %s"):format(took(server.startMs), took(server.discoverMs))
    table.insert(lines, ("**%s**  %s, %d restarts"):format(server.server, times, server.restarts or 0))
    for _, tool in ipairs(server.tools) do
      local spread = ("half within %s, 95 %% within %s"):format(took(tool.p50Ms), took(tool.p95Ms))
      table.insert(lines, ("- `%s`  %d calls, %d errors, %s"):format(tool.tool, tool.calls, tool.errors, spread))
    end
  end
  look.peek(#lines > 0 and lines or { "No server has run yet." }, "metrics")
end

local function split_tool(name) return (name or ""):match("^([^/]+)/(.+)$") end

local function call(arguments, command)
  local form, opts = require("mcp_sidecar.ui.call"), {}
  if command.range > 0 then
    opts.origin, opts.text = form.origin(command.line1, command.line2)
  end
  if arguments[1] then return form.start(arguments[1], opts) end
  form.pick(opts)
end

local function policy(arguments)
  local server, tool = split_tool(arguments[1])
  client.fetch("mcp.policies", { server = server, tool = tool }, function(result) explain(result.policies) end)
end

local function level(arguments)
  local server, tool = split_tool(arguments[1])
  if not server or not arguments[2] then return client.warn("usage: :Mcp level {server/tool} {level} [scope]") end
  local params = { server = server, tool = tool, level = arguments[2], scope = arguments[3] or "local" }
  client.command("mcp.tool.policy", params)
end

local function open_config()
  client.fetch("mcp.config", nil, function(result)
    look.choose(result.files, {
      prompt = "Open: ",
      format = function(file)
        local state = not file.exists and "not there yet" or file.valid and "" or "has mistakes"
        return ("%-8s %s  %s"):format(file.scope, vim.fn.fnamemodify(file.path, ":~:."), state)
      end,
    }, function(file) vim.cmd.edit({ args = { file.path }, magic = { file = false } }) end)
  end)
end

local function reload()
  client.fetch("mcp.config.reload", nil, function(result)
    local counts = { #result.added, #result.changed, #result.removed }
    client.say(("reloaded: %d added, %d changed, %d removed"):format(unpack(counts)))
  end)
end

local function metrics(arguments)
  client.fetch("mcp.metrics", { server = arguments[1] }, function(result) tell_metrics(result.servers) end)
end

local function toggle(name)
  local server = client.picture().servers[name] or {}
  client.command("mcp.server.toggle", { server = name, enabled = server.enabled == false })
end

local function up()
  client.restart(function(_, problem) client.complain(problem) end)
end

---What runs, and what completes its argument.
---@type table<string, { [1]: fun(arguments: string[], command: table), [2]?: fun(): string[] }>
local subcommands = {
  start = { send("mcp.server.start"), all_or_servers },
  stop = { send("mcp.server.stop"), all_or_servers },
  restart = { send("mcp.server.restart"), all_or_servers },
  toggle = { with_server(toggle), servers },
  trust = { with_server(function(name) require("mcp_sidecar.ui.approval").trust(name) end), servers },
  distrust = { send("mcp.server.trust", { trusted = false }), servers },
  auth = { send("mcp.server.auth"), servers },
  signout = { send("mcp.server.auth", { signOut = true }), servers },
  enable = { send("mcp.server.enable", { enabled = true }), servers },
  disable = { send("mcp.server.enable", { enabled = false }), servers },
  logs = { with_server(function(name) require("mcp_sidecar.ui.logs").open(name) end), servers },
  test = { with_server(function(name) require("mcp_sidecar.ui.result").test({ server = name }) end), servers },
  metrics = { metrics, servers },
  tools = { dashboard("tools") },
  calls = { dashboard("calls") },
  grants = { dashboard("grants") },
  approvals = { dashboard("approvals") },
  approve = { function() require("mcp_sidecar.ui.approval").focus() end },
  call = { call, tools },
  again = { function() require("mcp_sidecar.ui.call").again() end },
  policy = { policy, tools },
  level = { level, tools },
  resources = { function(arguments) require("mcp_sidecar.resources").pick(arguments[1]) end, servers },
  prompts = { function(arguments) require("mcp_sidecar.prompts").pick(arguments[1]) end },
  config = { open_config },
  reload = { reload },
  add = { function(arguments) require("mcp_sidecar.manage").add(arguments[1]) end },
  remove = { with_server(function(name) require("mcp_sidecar.manage").remove(name) end), servers },
  move = { with_server(function(name) require("mcp_sidecar.manage").move(name) end), servers },
  import = { function(arguments) require("mcp_sidecar.manage").import(arguments[1]) end, programs },
  export = { function(arguments) require("mcp_sidecar.manage").export(arguments[1]) end, programs },
  doctor = { function() vim.cmd.checkhealth("mcp_sidecar") end },
  log = { function() require("mcp_sidecar.ui.logs").own() end },
  up = { up },
  down = { client.stop },
}

---@return string[]
function M.names()
  local names = vim.tbl_keys(subcommands)
  table.sort(names)
  return names
end

---@param lead string what is being typed
---@param line string the whole command line
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line:gsub("^.-Mcp!?%s*", ""), "%s+")
  local completes = #words == 1 and M.names or #words == 2 and (subcommands[words[1]] or {})[2]
  return vim.tbl_filter(function(name) return vim.startswith(name, lead) end, completes and completes() or {})
end

---@param command table as nvim_create_user_command gives it
function M.run(command)
  local name = command.fargs[1]
  if not name then return require("mcp_sidecar.ui.dashboard").open(nil, command.smods) end
  if not subcommands[name] then
    return client.complain((":Mcp has no `%s`; there are %s"):format(name, table.concat(M.names(), ", ")))
  end
  subcommands[name][1](vim.list_slice(command.fargs, 2), command)
end

return M
