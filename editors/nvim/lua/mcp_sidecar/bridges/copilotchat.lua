--- Tools for CopilotChat.nvim: `require("mcp_sidecar.bridges.copilotchat").setup()` after its own setup.

local tools = require("mcp_sidecar.bridges.tools")

local M = {}

---Adds every tool as a function, and keeps them in step with the servers.
function M.setup()
  local chat = require("CopilotChat")
  local ours = {}
  tools.follow(function(list)
    for name in pairs(ours) do
      chat.config.functions[name] = nil
    end
    ours = {}
    for _, tool in ipairs(list) do
      local name = tools.name(tool)
      ours[name] = true
      chat.config.functions[name] = {
        group = tool.server,
        description = tool.description,
        schema = tool.inputSchema,
        -- The sidecar asks where it has to: asking twice would teach people not to read.
        trusted = true,
        resolve = function(input)
          local wait = require("plenary.async").wrap(function(done)
            tools.call(tool, input, "CopilotChat", function(text, err) done(text, err) end)
          end, 1)
          local text, err = wait()
          if err then error(err, 0) end
          return { { uri = "mcp://" .. tool.server .. "/" .. tool.tool, mimetype = "text/plain", data = text } }
        end,
      }
    end
  end)
end

return M
