--- The plugin's own question: whether to trust a definition that the sidecar does not ask about, because the user has
--- refused it before.

local client = require("mcp_sidecar.client")
local json = require("mcp_sidecar.json")
local question = require("mcp_sidecar.ui.question")

local M = {}

---Calls back with the status of a server, or reports that there is none.
---@param server string
---@param done fun(status: mcp_sidecar.ServerStatus)
local function fetch(server, done)
  client.fetch("mcp.servers", { server = server }, function(result)
    if not result.servers[1] then return client.error(("no server named `%s`"):format(server)) end
    done(result.servers[1])
  end)
end

---@param server string
---@param done fun(approval: mcp_sidecar.ClientApproval)
function M.ask(server, done)
  fetch(
    server,
    function(status)
      done({
        id = "trust-" .. server,
        kind = "trust",
        server = server,
        title = ("Trust this definition of `%s`?"):format(server),
        detail = json.pretty(status.config),
        diff = status.trustDiff,
        requester = { kind = "user" },
        options = { "allow-project", "deny" },
        createdAt = "",
        expiresAt = "",
        client_id = (client.current() or {}).id or -1,
      })
    end
  )
end

---Trusts the definition that was shown, unless it has changed since.
---@param approval mcp_sidecar.Approval
---@param answer mcp_sidecar.Answer
function M.answer(approval, answer)
  if answer.decision == "deny" then return end
  fetch(approval.server, function(status)
    if json.pretty(status.config) ~= approval.detail then
      return client.warn(("not trusted: the definition of `%s` has changed"):format(approval.server))
    end
    client.fetch(
      "mcp.server.trust",
      { server = approval.server, trusted = true },
      function() client.info(question.confirmation(approval, answer) or "") end
    )
  end)
end

return M
