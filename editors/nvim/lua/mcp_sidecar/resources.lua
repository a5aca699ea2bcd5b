--- Resources as read-only buffers, `mcp://server/uri`.

local client = require("mcp_sidecar.client")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

-- The server chooses the media type; only these may set a filetype.
local filetypes = { "css", "csv", "html", "javascript", "json", "markdown", "python", "rust", "xml", "yaml" }

local function name_of(server, uri) return ("mcp://%s/%s"):format(server, uri) end

---Opens a resource in the current window, or in a split when that window shows no file or an unsaved one.
---@param name string
function M.open(name)
  local buffer = vim.fn.bufadd(name)
  if vim.bo.buftype ~= "" or vim.bo.modified then
    windows.show(buffer, { mods = { split = "botright" } })
  else
    vim.api.nvim_set_current_buf(buffer)
  end
end

---Loads the resource of a buffer; `:edit` does this as well.
---@param buffer integer
---@param name string
function M.fill(buffer, name)
  local server, uri = name:match("^mcp://([^/]+)/(.+)$")
  windows.set(vim.bo[buffer], { buftype = "nofile", swapfile = false, modeline = false, modifiable = false })
  if not server then return client.error("the name of a resource must be mcp://server/uri") end
  client.command("mcp.resource.read", { server = server, uri = uri, subscribe = true }, function(err, result)
    if not vim.api.nvim_buf_is_valid(buffer) then return end
    if err then
      windows.set_lines(buffer, vim.split(err.message, "\n"))
      return client.error(err)
    end
    local lines = {}
    for _, content in ipairs(result.contents) do
      if content.text then
        vim.list_extend(lines, vim.split(content.text, "\r?\n"))
      elseif content.blob then
        vim.list_extend(lines, require("mcp_sidecar.ui.result").keep(content.blob, content.mimeType))
      end
    end
    windows.set_lines(buffer, lines)
    require("mcp_sidecar.ui.result").draw_pictures(buffer, lines)
    local first = result.contents[1] or {}
    local kind = first.blob and "markdown" or style.kind_of(first.mimeType, filetypes) or "text"
    windows.set_filetype(buffer, kind)
  end)
end

---Reloads the buffer of a resource that changed.
---@param server string
---@param uri string
function M.refresh(server, uri)
  local buffer = windows.find(name_of(server, uri))
  if buffer and vim.api.nvim_buf_is_loaded(buffer) then M.fill(buffer, name_of(server, uri)) end
end

---Asks for the variables of a template, with completion by its server.
---@param item mcp_sidecar.ResourceInfo
---@param done fun(uri: string)
local function expand(item, uri, done)
  local name = uri:match("{[+#./;?&]?([%w_]+)[%w_,*]*}")
  if not name then return done(uri) end
  local ref = { type = "ref/resource", uri = item.uriTemplate }
  require("mcp_sidecar.prompts").ask(item.server, ref, { name = name, required = true }, {}, function(value)
    if not value or value == "" then return end
    expand(item, (uri:gsub("{[+#./;?&]?[%w_,*]+}", (vim.uri_encode(value):gsub("%%", "%%%%")), 1)), done)
  end)
end

---The URI of a resource, after the variables of a template are filled in.
---@param item mcp_sidecar.ResourceInfo
---@param done fun(uri: string)
function M.uri_of(item, done) expand(item, item.uri or item.uriTemplate, done) end

---@param item mcp_sidecar.ResourceInfo
function M.start(item)
  M.uri_of(item, function(uri) M.open(name_of(item.server, uri)) end)
end

---Lets the user pick a resource, which is opened unless `done` is given.
---@param server? string
---@param done? fun(item: mcp_sidecar.ResourceInfo)
function M.pick(server, done)
  client.fetch("mcp.resources", { server = server }, function(result)
    windows.choose(vim.list_extend(result.resources, result.templates), {
      prompt = "Open: ",
      kind = "mcp_resource",
      none = "no server has resources",
      format = function(item)
        return ("%s  %s"):format(item.server, item.uri or item.uriTemplate), item.title or item.name or ""
      end,
    }, done or M.start)
  end)
end

return M
