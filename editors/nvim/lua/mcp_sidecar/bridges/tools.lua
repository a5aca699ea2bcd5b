--- What the bridges to chat plugins have in common: which tools there are, and a result as text for a model.
--- Every call goes to the sidecar as one of a plugin, so its policy and its approvals hold whoever asks.

local client = require("mcp_sidecar.client")

local M = {}

---@type mcp_sidecar.Tool[]
local known = {}
local listeners, hearing = {}, false

local function load()
  client.command("mcp.tools", nil, function(_, result)
    known = result and result.tools or known
    for _, listener in ipairs(listeners) do
      listener(known)
    end
  end)
end

---Calls back with the tools now, and whenever they change.
---@param listener fun(tools: mcp_sidecar.Tool[])
function M.follow(listener)
  table.insert(listeners, listener)
  if not hearing then
    hearing = true
    client.on("tools", load)
    client.on("reload", load)
  end
  load()
end

---Keeps a table of a chat plugin in step with the tools: an entry for each, by name. Other entries stay.
---@param into table<string, any>
---@param make fun(tool: mcp_sidecar.Tool, name: string): any
function M.keep(into, make)
  local ours = {}
  M.follow(function(list)
    for name in pairs(ours) do
      into[name] = nil
    end
    ours = {}
    for _, tool in ipairs(list) do
      local name = M.name(tool)
      ours[name], into[name] = true, make(tool, name)
    end
  end)
end

---The tools as last heard.
---@return mcp_sidecar.Tool[]
function M.known()
  if not hearing then M.follow(function() end) end
  return known
end

---A name that models accept: letters, digits and `_`, at most 64.
---@param tool mcp_sidecar.Tool
---@return string
function M.name(tool)
  local name = tool.name:gsub("[^%w_]", "_")
  return #name <= 64 and name or name:sub(1, 55) .. "_" .. vim.fn.sha256(name):sub(1, 8)
end

---@param result mcp_sidecar.Result
---@return string
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

---@param tool mcp_sidecar.Tool
---@param arguments table
---@param requester string
---@param done fun(text?: string, err?: string)
function M.call(tool, arguments, requester, done)
  require("mcp_sidecar").call(tool.name, arguments, { requester = requester }, function(err, result)
    if not result then return done(nil, err and err.message or "no answer") end
    local text = M.text(result)
    done(not result.isError and text or nil, result.isError and text or nil)
  end)
end

return M
