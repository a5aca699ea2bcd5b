--- `:Mcp {what} {which}`: one table of subcommands, what each needs of the sidecar, and how it is completed.

local client = require("mcp_sidecar.client")

local M = {}

local function server_names()
  return vim.tbl_map(function(server)
    return server.name
  end, require("mcp_sidecar").servers())
end

local function tool_names()
  local names = {}
  for _, server in ipairs(require("mcp_sidecar").servers()) do
    for _, tool in ipairs(server.tools or {}) do
      table.insert(names, server.name .. "/" .. tool.name)
    end
  end
  return names
end

local function with_all(names)
  return function()
    return vim.list_extend({ "all" }, names())
  end
end

local function dashboard(view)
  return function(_, command)
    require("mcp_sidecar.ui.dashboard").open(view, command.smods)
  end
end

---Shows an answer that has no window of its own.
local function show(title)
  return function(err, result)
    if err then
      return client.complain(err)
    end
    local lines = vim.list_extend({ "```json" }, require("mcp_sidecar.json").lines(result))
    require("mcp_sidecar.ui.look").peek(vim.list_extend(lines, { "```" }), { title = title })
  end
end

---Asks for a server where none was named, then runs.
local function with_server(run)
  return function(arguments)
    if arguments[1] then
      return run(arguments[1], arguments)
    end
    client.ensure(function(_, problem)
      local names = server_names()
      if problem or #names == 0 then
        return client.complain({ message = problem or "no servers: describe one in mcp.json" })
      end
      vim.ui.select(names, { prompt = "Server: ", kind = "mcp_server" }, function(name)
        if name then
          run(name, arguments)
        end
      end)
    end)
  end
end

local function on_server(name, extra)
  return with_server(function(server)
    local params = server == "all" and { all = true } or { server = server }
    client.command(name, vim.tbl_extend("force", params, extra or {}))
  end)
end

---@type table<string, { needs?: string, complete?: fun(): string[], run: fun(arguments: string[], command: table) }>
local subcommands = {
  start = { needs = "mcp.server.start", complete = with_all(server_names), run = on_server("mcp.server.start") },
  stop = { needs = "mcp.server.stop", complete = with_all(server_names), run = on_server("mcp.server.stop") },
  restart = { needs = "mcp.server.restart", complete = with_all(server_names), run = on_server("mcp.server.restart") },
  toggle = {
    needs = "mcp.server.toggle",
    complete = server_names,
    run = with_server(function(name)
      local server = client.picture().servers[name] or {}
      client.command("mcp.server.toggle", { server = name, enabled = server.enabled == false })
    end),
  },
  trust = {
    needs = "mcp.server.trust",
    complete = server_names,
    run = with_server(function(name)
      require("mcp_sidecar.ui.approval").trust(name)
    end),
  },
  distrust = {
    needs = "mcp.server.trust",
    complete = server_names,
    run = on_server("mcp.server.trust", { trusted = false }),
  },
  auth = { needs = "mcp.server.auth", complete = server_names, run = on_server("mcp.server.auth") },
  signout = {
    needs = "mcp.server.auth",
    complete = server_names,
    run = on_server("mcp.server.auth", { signOut = true }),
  },
  logs = {
    needs = "mcp.server.logs",
    complete = server_names,
    run = with_server(function(name)
      require("mcp_sidecar.ui.logs").open(name)
    end),
  },
  test = {
    needs = "mcp.server.test",
    complete = server_names,
    run = with_server(function(name)
      require("mcp_sidecar.ui.result").test({ server = name })
    end),
  },
  tools = { needs = "mcp.tools", run = dashboard("tools") },
  calls = { needs = "mcp.calls", run = dashboard("calls") },
  grants = { needs = "mcp.grants", run = dashboard("grants") },
  approvals = { needs = "mcp.approvals", run = dashboard("approvals") },
  approve = {
    needs = "mcp.approval.resolve",
    run = function()
      require("mcp_sidecar.ui.approval").focus()
    end,
  },
  call = {
    needs = "mcp.tool.call",
    complete = tool_names,
    run = function(arguments, command)
      local form = require("mcp_sidecar.ui.form")
      local opts = {}
      if command.range > 0 then
        opts.origin = form.origin({ command.line1, command.line2 })
        opts.text = table.concat(vim.api.nvim_buf_get_lines(0, command.line1 - 1, command.line2, false), "\n")
      end
      if arguments[1] then
        form.start(arguments[1], opts)
      else
        form.pick(opts)
      end
    end,
  },
  again = {
    needs = "mcp.tool.call",
    run = function()
      require("mcp_sidecar.ui.form").again()
    end,
  },
  policy = {
    needs = "mcp.policies",
    complete = tool_names,
    run = function(arguments)
      local server, tool = (arguments[1] or ""):match("^([^/]+)/(.+)$")
      client.command("mcp.policies", { server = server, tool = tool }, show("why"))
    end,
  },
  level = {
    needs = "mcp.tool.policy",
    complete = tool_names,
    run = function(arguments)
      local server, tool = (arguments[1] or ""):match("^([^/]+)/(.+)$")
      if not server or not arguments[2] then
        return client.say("usage: :Mcp level {server/tool} {level} [scope]", vim.log.levels.WARN)
      end
      local params = { server = server, tool = tool, level = arguments[2], scope = arguments[3] or "local" }
      client.command("mcp.tool.policy", params)
    end,
  },
  resources = {
    needs = "mcp.resources",
    complete = server_names,
    run = function(arguments)
      require("mcp_sidecar.resources").pick(arguments[1])
    end,
  },
  prompts = {
    needs = "mcp.prompts",
    run = function(arguments)
      require("mcp_sidecar.prompts").pick(arguments[1])
    end,
  },
  metrics = {
    needs = "mcp.metrics",
    complete = server_names,
    run = function(arguments)
      client.command("mcp.metrics", { server = arguments[1] }, show("metrics"))
    end,
  },
  config = {
    needs = "mcp.config",
    run = function()
      client.command("mcp.config", nil, function(err, result)
        if err then
          return client.complain(err)
        end
        vim.ui.select(result.files, {
          prompt = "Open: ",
          format_item = function(file)
            local state = not file.exists and "not there yet" or file.valid and "" or "has mistakes"
            return ("%-8s %s  %s"):format(file.scope, vim.fn.fnamemodify(file.path, ":~:."), state)
          end,
        }, function(file)
          if file then
            vim.cmd.edit({ args = { file.path }, magic = { file = false } })
          end
        end)
      end)
    end,
  },
  reload = {
    needs = "mcp.config.reload",
    run = function()
      client.command("mcp.config.reload", nil, function(err, result)
        if err then
          return client.complain(err)
        end
        client.say(
          ("reloaded: %d added, %d changed, %d removed"):format(#result.added, #result.changed, #result.removed)
        )
      end)
    end,
  },
  add = {
    needs = "mcp.server.add",
    run = function(arguments)
      require("mcp_sidecar.manage").add(arguments[1])
    end,
  },
  remove = {
    needs = "mcp.server.remove",
    complete = server_names,
    run = with_server(function(name)
      require("mcp_sidecar.manage").remove(name)
    end),
  },
  enable = {
    needs = "mcp.server.enable",
    complete = server_names,
    run = on_server("mcp.server.enable", { enabled = true }),
  },
  disable = {
    needs = "mcp.server.enable",
    complete = server_names,
    run = on_server("mcp.server.enable", { enabled = false }),
  },
  import = {
    needs = "mcp.config.import",
    complete = function()
      return { "vscode", "claude", "claude-desktop", "cursor", "windsurf", "zed", "cline", "codex", "mcphub" }
    end,
    run = function(arguments)
      require("mcp_sidecar.manage").import(arguments[1])
    end,
  },
  export = {
    needs = "mcp.config.export",
    complete = function()
      return { "vscode", "claude", "claude-desktop", "cursor", "windsurf", "zed", "cline", "codex", "mcphub" }
    end,
    run = function(arguments)
      require("mcp_sidecar.manage").export(arguments[1])
    end,
  },
  doctor = {
    run = function()
      vim.cmd.checkhealth("mcp_sidecar")
    end,
  },
  log = {
    run = function()
      require("mcp_sidecar.ui.logs").own()
    end,
  },
  up = {
    run = function()
      client.restart(function(_, problem)
        client.complain(problem and { message = problem })
      end)
    end,
  },
  down = {
    run = function()
      client.stop()
    end,
  },
}

---The subcommands that the sidecar which runs can serve.
---@return string[]
function M.names()
  local names = {}
  for name, subcommand in pairs(subcommands) do
    if not subcommand.needs or client.knows(subcommand.needs) then
      table.insert(names, name)
    end
  end
  table.sort(names)
  return names
end

---@param lead string what is being typed
---@param line string the whole command line
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line:gsub("^.-Mcp!?%s*", ""), "%s+")
  local offered = {}
  if #words <= 1 then
    offered = M.names()
  elseif #words == 2 and subcommands[words[1]] and subcommands[words[1]].complete then
    offered = subcommands[words[1]].complete()
  end
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, offered)
end

---@param command table as nvim_create_user_command gives it
function M.run(command)
  local name = command.fargs[1]
  if not name then
    return require("mcp_sidecar.ui.dashboard").open(nil, command.smods)
  end
  local subcommand = subcommands[name]
  if not subcommand then
    return client.say(
      (":Mcp has no `%s`; there are %s"):format(name, table.concat(M.names(), ", ")),
      vim.log.levels.ERROR
    )
  elseif subcommand.needs and not client.knows(subcommand.needs) then
    return client.say(("this sidecar has no `%s`"):format(subcommand.needs), vim.log.levels.WARN)
  end
  subcommand.run(vim.list_slice(command.fargs, 2), command)
end

return M
