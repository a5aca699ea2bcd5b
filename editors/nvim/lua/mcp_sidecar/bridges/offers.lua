--- Shared by the bridges to chat plugins: resources and prompts, and their texts.
--- What a model asks for is read with the name of the plugin, so policy and approvals apply. What the user picks in a chat
--- is not asked about again.

local client = require("mcp_sidecar.client")
local tools = require("mcp_sidecar.bridges.tools")

local M = {}

---@class mcp_sidecar.Offers
---@field resources mcp_sidecar.ResourceInfo[] with templates
---@field prompts mcp_sidecar.PromptInfo[]

---@type fun(offers: mcp_sidecar.Offers)[]
local listeners = {}
local loading = false

local function load()
  if loading then return end
  loading = true
  client.command("mcp.resources", nil, function(_, listed)
    client.command("mcp.prompts", nil, function(_, prompts)
      loading = false
      if not (listed and prompts) then return end
      local all = vim.list_extend(listed.resources, listed.templates)
      for _, listener in ipairs(listeners) do
        listener({ resources = all, prompts = prompts.prompts })
      end
    end)
  end)
end

---Calls back with what servers offer, now and whenever it may have changed.
---@param listener fun(offers: mcp_sidecar.Offers)
function M.follow(listener)
  if #listeners == 0 then
    client.on("reload", load)
    -- The event of a single server; a refresh of all of them has no server.
    client.on("servers", function(change)
      if change.server or change.name then load() end
    end)
  end
  table.insert(listeners, listener)
  load()
end

---A name that chat plugins accept.
---@param server string
---@param name string
function M.name(server, name) return tools.name({ name = ("mcp__%s__%s"):format(server, name) }) end

local function requester(plugin) return plugin and { kind = "plugin", name = plugin } or nil end

---@param contents mcp_sidecar.ResourceContents[]
local function text_of(contents)
  local function text(content) return content.text or ("[%s %s]"):format(content.mimeType or "data", content.uri) end
  return table.concat(vim.tbl_map(text, contents), "\n")
end

---@param server string
---@param uri string
---@param plugin? string the plugin whose model asks for it; nil: the user does
---@param done fun(text?: string, err?: string)
function M.read(server, uri, plugin, done)
  local params = { server = server, uri = uri, requester = requester(plugin) }
  client.command("mcp.resource.read", params, function(err, result)
    if not result then return done(nil, err and err.message or "no response") end
    done(text_of(result.contents))
  end)
end

---@param prompt mcp_sidecar.PromptInfo
---@param arguments? table<string, string>
---@param plugin? string as for `read`
---@param done fun(text?: string, err?: string)
function M.prompt(prompt, arguments, plugin, done)
  local params = { server = prompt.server, name = prompt.name, arguments = arguments, requester = requester(plugin) }
  client.command("mcp.prompt.get", params, function(err, result)
    if not result then return done(nil, err and err.message or "no response") end
    local parts = vim.tbl_map(
      function(message) return tools.text({ content = { message.content } }) end,
      result.messages
    )
    done(table.concat(parts, "\n\n"))
  end)
end

---Lets the user pick a resource; continues with its text.
---@param done fun(text: string, name: string)
function M.pick_resource(done)
  local resources = require("mcp_sidecar.resources")
  resources.pick(nil, function(item)
    resources.uri_of(item, function(uri)
      M.read(item.server, uri, nil, function(text, err)
        if not text then return client.error(err) end
        done(text, ("%s/%s"):format(item.server, uri))
      end)
    end)
  end)
end

---Lets the user fill in a prompt; continues with its text.
---@param prompt mcp_sidecar.PromptInfo
---@param done fun(text: string)
function M.fill_prompt(prompt, done)
  require("mcp_sidecar.prompts").ask_arguments(prompt, function(arguments)
    M.prompt(prompt, arguments, nil, function(text, err)
      if not text then return client.error(err) end
      done(text)
    end)
  end)
end

return M
