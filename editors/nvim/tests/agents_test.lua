-- The board of agents, sets of tools, and what tools and results cost.
local Child = require("child")

local function rows(child) return child:text("mcp-dashboard://workspace") end

---Connects an agent to the workspace of the child, and waits until it is greeted.
local function connect(child, name)
  child:lua(
    [[
    local name = ...
    local heard = ""
    local job = vim.fn.jobstart({ "mcp-sidecar", "connect", "--name", name }, {
      on_stdout = function(_, data) heard = heard .. table.concat(data, "\n") end,
      on_exit = function() agents[name].gone = true end,
    })
    agents = agents or {}
    agents[name] = {
      send = function(message)
        message.jsonrpc = "2.0"
        vim.fn.chansend(job, vim.json.encode(message) .. "\n")
      end,
      heard = function(text) return heard:find(text, 1, true) ~= nil end,
    }
    local info = { name = name, version = "1" }
    local params = { protocolVersion = "2025-11-25", capabilities = vim.empty_dict(), clientInfo = info }
    agents[name].send({ id = 0, method = "initialize", params = params })
  ]],
    name
  )
  child:wait(("agents[%q].heard('serverInfo')"):format(name))
  child:lua("agents[...].send({ method = 'notifications/initialized' })", name)
end

local function call(child, name, id, tool, arguments)
  child:lua(
    [[
    local name, id, tool, arguments = ...
    agents[name].send({ id = id, method = "tools/call", params = { name = tool, arguments = arguments } })
  ]],
    name,
    id,
    tool,
    arguments
  )
end

return {
  {
    "the board shows agents, pauses them, and goes to the question that one waits for",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp agents")
      child:sees("no agent is connected")
      connect(child, "reviewer")
      child:sees("reviewer")
      child:sees("idle")
      child:lua("vim.fn.search('reviewer')")
      child:keys("s")
      child:sees("paused")
      call(child, "reviewer", 1, "demo__echo", { text = "later" })
      child:sees("paused, demo/echo waits")
      child:keys("s")
      child:wait("agents.reviewer.heard('later')")
      child:sees("1 call, 0 denied")
      call(child, "reviewer", 2, "demo__take_note", { text = "x" })
      child:sees("waits for you: demo/take_note")
      child:lua("vim.fn.confirm = function() return 2 end")
      child:keys("x")
      child:wait("agents.reviewer.gone")
      child:sees("no agent is connected")
    end,
  },
  {
    "`:Mcp set` limits agents to a set, and the list shows what tools cost",
    function(open)
      local child = Child.ready(open)
      local config = child.place .. "/config/config.toml"
      vim.fn.writefile({ "[sets.sums]", 'tools = ["demo__add"]' }, config)
      connect(child, "reviewer")
      -- Only an agent that has a list is told that it changes.
      child:lua("agents.reviewer.send({ id = 1, method = 'tools/list' })")
      child:wait("agents.reviewer.heard('roll_dice')")
      child:wait("vim.list_contains(vim.fn.getcompletion('Mcp set ', 'cmdline'), 'sums')")
      child:command("Mcp set sums")
      child:hears("all agents of this workspace: only the set `sums`")
      child:wait("agents.reviewer.heard('tools/list_changed')")
      child:command("Mcp agents")
      child:sees("set sums")
      child:command("Mcp set none")
      child:hears("all agents of this workspace: no set")
      child:keys("2")
      child:sees("roll_dice")
      assert(rows(child):find("echo.*~%d+"), rows(child))
    end,
  },
  {
    "what was refused while no editor was open is reported, and can be allowed next time",
    function(open)
      local child = Child.ready(open)
      local heard = ""
      local agent = vim.fn.jobstart({ Child.binary, "connect", "--name", "night" }, {
        cwd = child.workspace,
        env = {
          PATH = child.place .. "/bin:" .. vim.env.PATH,
          MCP_SIDECAR_CONFIG_DIR = child.place .. "/config",
          MCP_SIDECAR_STATE_DIR = child.place .. "/state",
          MCP_SIDECAR_RUNTIME_DIR = child.place .. "/run",
        },
        on_stdout = function(_, data) heard = heard .. table.concat(data, "\n") end,
      })
      local function send(message)
        message.jsonrpc = "2.0"
        vim.fn.chansend(agent, vim.json.encode(message) .. "\n")
      end
      local function hears(text)
        assert(vim.wait(15000, function() return heard:find(text, 1, true) ~= nil end, 20), text .. " in " .. heard)
        heard = ""
      end
      local note = { name = "demo__take_note", arguments = { text = "milk" } }
      local info = { name = "night", version = "1" }
      local params = { protocolVersion = "2025-11-25", capabilities = vim.empty_dict(), clientInfo = info }
      send({ id = 0, method = "initialize", params = params })
      hears("serverInfo")
      send({ method = "notifications/initialized" })
      child:quit()
      send({ id = 1, method = "tools/call", params = note })
      hears("there was no one to ask")
      local second = open({ beside = child })
      second:command("Mcp")
      second:hears("While no editor was open, night made 1 call; 1 was refused because there was no one to ask.")
      second:lua("vim.ui.select = function(items, _, done) done(items[1]) end")
      second:command("Mcp away")
      second:hears("`demo/take_note` of `night` is allowed next time")
      send({ id = 2, method = "tools/call", params = note })
      hears("saved")
      vim.fn.jobstop(agent)
    end,
  },
}
