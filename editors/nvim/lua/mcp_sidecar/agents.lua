--- The agents that are connected: limits them to a set of tools, and shows what they did while no editor was open.

local client = require("mcp_sidecar.client")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---Limits agents to a set. Without an agent, all of this workspace; without a set, the limit ends.
---@param set? string
---@param agent? mcp_sidecar.AgentStatus
---@param done? fun()
function M.set(set, agent, done)
  client.fetch("mcp.agent.set", { set = set, agent = agent and agent.id }, function()
    local who = agent and ("`%s`"):format(agent.name) or "all agents of this workspace"
    client.info(set and ("%s: only the set `%s`"):format(who, set) or ("%s: no set"):format(who))
    if done then done() end
  end)
end

---Asks for a set.
---@param agent? mcp_sidecar.AgentStatus
---@param done? fun()
function M.choose_set(agent, done)
  client.fetch("mcp.agents", nil, function(result)
    local choices = { false } ---@type (string|false)[]
    vim.list_extend(choices, result.sets)
    local opts = {
      prompt = "Set of tools: ",
      format = function(set) return set or "no set: all tools" end,
    }
    windows.choose(choices, opts, function(set) M.set(set or nil, agent, done) end)
  end)
end

---Shows what agents did while no editor was open. A call that was refused can be allowed for the next time.
function M.away()
  client.fetch("mcp.away", nil, function(report)
    if #report.refused == 0 then return client.info(report.summary or "agents did nothing while no editor was open") end
    local opts = {
      prompt = report.summary .. " Allow next time: ",
      format = function(call)
        local arguments = vim.json.encode(call.arguments or vim.empty_dict())
        return ("%s: %s/%s"):format(call.requester.name, call.server, call.tool), arguments
      end,
    }
    windows.choose(report.refused, opts, function(call)
      client.fetch("mcp.away.allow", { callId = call.callId }, function()
        local what = ("`%s/%s` of `%s`"):format(call.server, call.tool, call.requester.name)
        client.info(("%s is allowed next time, with these arguments"):format(what))
      end)
    end)
  end)
end

---Reports once what agents did meanwhile, if something was refused.
function M.greet()
  client.command("mcp.away", nil, function(_, report)
    if report and #report.refused > 0 then client.info(report.summary .. " `:Mcp away` shows it.") end
  end)
end

return M
