--- Shared by the bridges to chat plugins: the list of tools, and results as text for a model.
--- Every call goes to the sidecar with the name of the plugin, so policy and approvals apply.

local client = require("mcp_sidecar.client")

local M = {}

---@type mcp_sidecar.ToolInfo[]
local known = {}
---@type fun(tools: mcp_sidecar.ToolInfo[])[]
local listeners = {}

local function load()
  client.command("mcp.tools", nil, function(_, result)
    known = result and result.tools or known
    for _, listener in ipairs(listeners) do
      listener(known)
    end
  end)
end

---Calls back with the tools, now and whenever they change.
---@param listener fun(tools: mcp_sidecar.ToolInfo[])
local function follow(listener)
  if #listeners == 0 then
    client.on("tools", load)
    client.on("reload", load)
  end
  table.insert(listeners, listener)
  load()
end

---Keeps the entries that `make` returns up to date in a table of a chat plugin. Other entries stay.
---@generic T
---@param into table<string, any>
---@param make fun(known: T): table<string, any>
---@param source? fun(listener: fun(known: T)) calls back with what there is; nil: with the tools
function M.keep(into, make, source)
  local ours = {}
  local follow_it = source or follow
  follow_it(function(found)
    for name in pairs(ours) do
      into[name] = nil
    end
    ours = make(found)
    for name, entry in pairs(ours) do
      into[name] = entry
    end
  end)
end

---Returns a function that makes an entry for each tool, by name.
---@param make fun(tool: mcp_sidecar.ToolInfo, name: string): any
---@return fun(tools: mcp_sidecar.ToolInfo[]): table<string, any>
function M.each(make)
  return function(tools)
    local entries = {}
    for _, tool in ipairs(tools) do
      entries[M.name(tool)] = make(tool, M.name(tool))
    end
    return entries
  end
end

---The last known tools.
---@return mcp_sidecar.ToolInfo[]
function M.known()
  if #listeners == 0 then follow(function() end) end
  return known
end

---A name that models accept: letters, digits and `_`, at most 64.
---@param tool { name: string }
function M.name(tool)
  local name = tool.name:gsub("[^%w_]", "_")
  return #name <= 64 and name or name:sub(1, 55) .. "_" .. vim.fn.sha256(name):sub(1, 8)
end

---@param result { content: mcp_sidecar.Content[], structuredContent?: any }
function M.text(result)
  local parts = {}
  for _, content in ipairs(result.content) do
    if content.type == "text" then
      table.insert(parts, content.text)
    elseif content.resource and content.resource.text then
      table.insert(parts, content.resource.text)
    else
      table.insert(parts, ("[%s %s]"):format(content.type, content.uri or content.mimeType or ""))
    end
  end
  if #parts == 0 and result.structuredContent ~= nil then parts = { vim.json.encode(result.structuredContent) } end
  return table.concat(parts, "\n")
end

---@param tool mcp_sidecar.ToolInfo
---@param arguments table
---@param requester string
---@param done fun(text?: string, err?: string)
function M.call(tool, arguments, requester, done)
  require("mcp_sidecar").call(tool.name, arguments, { requester = requester }, function(err, result)
    if not result then return done(nil, err and err.message or "no response") end
    local text = M.text(result)
    done(not result.isError and text or nil, result.isError and text or nil)
  end)
end

return M
