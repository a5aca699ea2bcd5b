--- Resources as read-only buffers, `mcp://server/uri`.

local client = require("mcp_sidecar.client")
local look = require("mcp_sidecar.ui.look")

local M = {}

-- A server names the type of its text; only these choose a filetype here.
local filetypes = {
  ["text/markdown"] = "markdown",
  ["application/json"] = "json",
  ["text/html"] = "html",
  ["text/css"] = "css",
  ["text/csv"] = "csv",
  ["text/x-python"] = "python",
  ["text/x-rust"] = "rust",
  ["text/javascript"] = "javascript",
  ["application/xml"] = "xml",
  ["text/xml"] = "xml",
  ["application/yaml"] = "yaml",
}

---@param server string
---@param uri string
function M.name(server, uri)
  return ("mcp://%s/%s"):format(server, uri)
end

---@param name string
---@return string? server, string? uri
local function parts(name)
  return name:match("^mcp://([^/]+)/(.+)$")
end

---Opens a resource in the current window, beside it when that shows something of ours.
---@param name string
function M.open(name)
  local buffer = vim.fn.bufadd(name)
  if vim.bo.buftype ~= "" or vim.bo.modified then
    look.show(buffer, { split = "botright" })
  else
    vim.api.nvim_set_current_buf(buffer)
  end
end

---Reads the resource of a buffer. Also what `:edit` does.
---@param buffer integer
---@param name string
function M.fill(buffer, name)
  local server, uri = parts(name)
  vim.bo[buffer].buftype = "nofile"
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].modeline = false
  vim.bo[buffer].modifiable = false
  if not server then
    return client.complain({ message = "a resource is named mcp://server/uri" })
  end
  client.command("mcp.resource.read", { server = server, uri = uri }, function(err, result)
    if not vim.api.nvim_buf_is_valid(buffer) then
      return
    elseif err then
      look.set_lines(buffer, vim.split(err.message, "\n"))
      return client.complain(err)
    end
    local lines, mime = {}, nil
    for _, content in ipairs(result.contents) do
      mime = mime or content.mimeType
      if content.text then
        vim.list_extend(lines, vim.split(content.text, "\r?\n"))
      elseif content.blob then
        local path = require("mcp_sidecar.ui.result").keep(content.blob, content.mimeType)
        table.insert(lines, ("![%s](%s)"):format(content.mimeType or "data", path))
      end
    end
    look.set_lines(buffer, lines)
    vim.bo[buffer].filetype = filetypes[(mime or ""):match("^[^;]*")] or "text"
  end)
end

---A resource changed: its buffer, if there is one, is read again.
function M.refresh(server, uri)
  local buffer = look.find(M.name(server, uri))
  if buffer and vim.api.nvim_buf_is_loaded(buffer) then
    M.fill(buffer, M.name(server, uri))
  end
end

---Fills in the variables of a template, one after another.
local function expand(template, done)
  local name = template:match("{[+#./;?&]?([%w_]+)[%w_,*]*}")
  if not name then
    return done(template)
  end
  vim.ui.input({ prompt = name .. ": " }, function(value)
    if value and value ~= "" then
      expand((template:gsub("{[+#./;?&]?[%w_,*]+}", (vim.uri_encode(value):gsub("%%", "%%%%")), 1)), done)
    end
  end)
end

---Lets the user pick a resource.
---@param server? string
function M.pick(server)
  client.command("mcp.resources", { server = server }, function(err, result)
    local items = {}
    vim.list_extend(items, result and result.resources or {})
    vim.list_extend(items, result and result.templates or {})
    if err or #items == 0 then
      return client.complain(err or { message = "no server offers resources" })
    end
    vim.ui.select(items, {
      prompt = "Open: ",
      kind = "mcp_resource",
      format_item = function(item)
        return ("%s  %s  %s"):format(item.server, item.uri or item.uriTemplate, item.title or item.name or "")
      end,
    }, function(item)
      if item then
        expand(item.uri or item.uriTemplate, function(uri)
          M.open(M.name(item.server, uri))
        end)
      end
    end)
  end)
end

return M
