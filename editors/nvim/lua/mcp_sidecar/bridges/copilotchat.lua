--- Tools for CopilotChat.nvim: `require("mcp_sidecar.bridges.copilotchat").setup()` after its own setup.

local tools = require("mcp_sidecar.bridges.tools")

local M = {}

---Calls a tool and waits, as its functions do: in a coroutine of plenary.
local function resolve(tool, input)
  ---@diagnostic disable-next-line: unresolved-require it is there when CopilotChat is
  local wait = require("plenary.async").wrap(function(done) tools.call(tool, input, "CopilotChat", done) end, 1)
  local text, err = wait()
  if err then error(err, 0) end
  -- Without a uri: what has one is taken for a resource, and given to the model only once.
  return { { data = text, mimetype = "text/plain" } }
end

---Adds every tool as a function, and keeps them in step with the servers.
function M.setup()
  ---@diagnostic disable-next-line: unresolved-require whoever calls this has it
  local chat = require("CopilotChat")
  local function entry(tool)
    return {
      group = tool.server,
      description = tool.description,
      schema = tool.inputSchema,
      -- The sidecar asks where it has to: asking twice would teach people not to read.
      trusted = true,
      resolve = function(input) return resolve(tool, input) end,
    }
  end
  tools.keep(chat.config.functions, tools.each(entry))
end

return M
