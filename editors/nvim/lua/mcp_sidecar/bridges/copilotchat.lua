--- Tools, resources and prompts for CopilotChat.nvim: `require("mcp_sidecar.bridges.copilotchat").setup()` after its own
--- setup.

local offers = require("mcp_sidecar.bridges.offers")
local tools = require("mcp_sidecar.bridges.tools")

local M = {}

local NAME = "CopilotChat"

---Waits in a coroutine of plenary, as functions of CopilotChat do.
---@param run fun(done: fun(text?: string, err?: string))
---@param uri? string CopilotChat treats an entry with one as a resource, and sends it to the model only once
local function wait_for(run, uri)
  ---@diagnostic disable-next-line: unresolved-require installed with CopilotChat
  local text, err = require("plenary.async").wrap(run, 1)()
  if err then error(err, 0) end
  return { { data = text, mimetype = "text/plain", uri = uri, name = uri } }
end

---A function for each server with resources (`#mcp__server__resource`), and one for each prompt. A model may use them, too,
---so they are asked for as it does.
---@param offered mcp_sidecar.Offers
local function functions(offered)
  local found, uris = {}, {}
  for _, resource in ipairs(offered.resources) do
    uris[resource.server] = uris[resource.server] or {}
    if resource.uri then table.insert(uris[resource.server], resource.uri) end
  end
  for server, listed in pairs(uris) do
    found[offers.name(server, "resource")] = {
      group = server,
      description = "Reads a resource of the MCP server " .. server,
      uri = ("mcp://%s/{uri}"):format(server),
      schema = {
        type = "object",
        required = { "uri" },
        -- A template has other URIs as well.
        properties = {
          uri = { type = "string", description = "One of: " .. table.concat(listed, ", "), enum = listed },
        },
      },
      trusted = true,
      resolve = function(input)
        local uri = ("mcp://%s/%s"):format(server, input.uri)
        return wait_for(function(done) offers.read(server, input.uri, NAME, done) end, uri)
      end,
    }
  end
  for _, prompt in ipairs(offered.prompts) do
    local properties, required = vim.empty_dict(), {}
    for _, argument in ipairs(prompt.arguments or {}) do
      properties[argument.name] = { type = "string", description = argument.description or argument.name }
      if argument.required then table.insert(required, argument.name) end
    end
    found[offers.name(prompt.server, "prompt_" .. prompt.name)] = {
      group = prompt.server,
      description = prompt.description or prompt.title or ("Prompt of the MCP server " .. prompt.server),
      schema = { type = "object", required = required, properties = properties },
      trusted = true,
      resolve = function(input)
        return wait_for(function(done) offers.prompt(prompt, next(input) and input or nil, NAME, done) end)
      end,
    }
  end
  return found
end

---Adds every tool, resource and prompt as a function and keeps the functions up to date.
function M.setup()
  ---@diagnostic disable-next-line: unresolved-require required by the caller
  local chat = require("CopilotChat")
  local function entry(tool)
    return {
      group = tool.server,
      description = tool.description,
      schema = tool.inputSchema,
      -- The sidecar asks where necessary. A second question would teach people not to read.
      trusted = true,
      resolve = function(input)
        return wait_for(function(done) tools.call(tool, input, NAME, done) end)
      end,
    }
  end
  tools.keep(chat.config.functions, tools.each(entry))
  tools.keep(chat.config.functions, functions, offers.follow)
end

return M
