-- An editor that an agent opened can look, but not decide for the user.

local Child = require("child")

local project = '{ "servers": { "theirs": { "command": "mcp-sidecar", "args": ["demo-server"] } } }'
local refusal = "this program was started by the agent `claude`"

return {
  {
    "an editor that an agent opened lists servers but can neither answer nor trust",
    function(open)
      local child = Child.ready(open, { project = project, options = "{ auto_focus = false }" })
      local other = open({ beside = child, by_agent = true, options = "{ auto_focus = false }" })
      other:command("Mcp")
      other:connected("demo")
      other:sees("theirs")
      local process = other:lua("return vim.uv.os_getpid()")
      child:hears(("Another editor joined this workspace: Neovim, process %d (nvim). "):format(process))
      child:hears("It was started by the agent `claude`, so it is read-only")

      child:ask()
      local answer = "require('mcp_sidecar.client').workspace().approvals"
      local waiting = ([[vim.iter(%s):find(function(each) return each.kind == "tool" end)]]):format(answer)
      child:wait(waiting)
      other:wait(waiting, "the question in the editor of the agent")
      for _, command in ipairs({
        ([[return "mcp.approval.resolve", { id = (%s).id, decision = "allow-once" }]]):format(waiting),
        [[return "mcp.server.trust", {
          server = "theirs",
          trusted = true,
          digest = require('mcp_sidecar.client').workspace().servers.theirs.digest,
        }]],
      }) do
        other:lua(([[
          local name, params = (function() %s end)()
          refused = nil
          require("mcp_sidecar.client").command(name, params, function(err) refused = err and err.message or "" end)
        ]]):format(command))
        local words = other:wait("refused")
        assert(words:find(refusal, 1, true), words)
      end
      -- With the keys of a user.
      other:lua("notes = {}")
      other:lua("vim.fn.search('theirs  waiting')")
      other:keys("t")
      other:prompt()
      other:answer("ap")
      other:hears(refusal)
      assert(other:lua("return require('mcp_sidecar.client').workspace().servers.theirs.status") ~= "connected")
      assert(child:lua("return answered == nil"), "the agent answered for the user")

      child:lua(([[
        local params = { id = (%s).id, decision = "allow-once" }
        require("mcp_sidecar.client").command("mcp.approval.resolve", params, function() end)
      ]]):format(waiting))
      child:wait("answered and not answered.err")
    end,
  },
}
