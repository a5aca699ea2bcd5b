--- What a tool gave, as what it is: markdown, JSON, a picture in a file, links to resources.

local client = require("mcp_sidecar.client")
local json = require("mcp_sidecar.json")
local look = require("mcp_sidecar.ui.look")

local M = {}

local endings = {
  ["image/png"] = "png",
  ["image/jpeg"] = "jpg",
  ["image/gif"] = "gif",
  ["image/webp"] = "webp",
  ["image/svg+xml"] = "svg",
  ["audio/wav"] = "wav",
  ["audio/mpeg"] = "mp3",
  ["audio/ogg"] = "ogg",
  ["application/pdf"] = "pdf",
}

---Keeps bytes in the cache, readable by the user alone.
---@param data string base64
---@param mime? string
---@return string path
function M.keep(data, mime)
  local folder = vim.fn.stdpath("cache") .. "/mcp_sidecar"
  vim.fn.mkdir(folder, "p", "0700")
  -- The name comes from the contents: a server has no say in it.
  local path = ("%s/%s.%s"):format(folder, vim.fn.sha256(data):sub(1, 16), endings[mime or ""] or "bin")
  local file = assert(vim.uv.fs_open(path, "w", tonumber("600", 8)))
  vim.uv.fs_write(file, vim.base64.decode(data))
  vim.uv.fs_close(file)
  return path
end

local function address(server, uri)
  return ("mcp://%s/%s"):format(server, uri)
end

---One block of content as lines of markdown.
local function block(server, content)
  local kind = content.type
  if kind == "text" then
    return vim.split(content.text or "", "\r?\n")
  elseif kind == "image" or kind == "audio" then
    return { ("![%s](%s)"):format(content.mimeType or kind, M.keep(content.data, content.mimeType)) }
  elseif kind == "resource_link" then
    local name = content.title or content.name or content.uri
    local lines = { ("[%s](%s)"):format(name, address(server, content.uri)) }
    if content.description then
      table.insert(lines, content.description)
    end
    return lines
  elseif kind == "resource" and content.resource then
    local resource = content.resource
    local lines = { ("[%s](%s)"):format(resource.uri, address(server, resource.uri)), "" }
    if resource.text then
      return vim.list_extend(lines, vim.split(resource.text, "\r?\n"))
    elseif resource.blob then
      table.insert(lines, ("![%s](%s)"):format(resource.mimeType or "data", M.keep(resource.blob, resource.mimeType)))
    end
    return lines
  end
  return json.lines(content)
end

---@param result mcp_sidecar.Result
---@return string[] lines, "markdown"|"json" filetype
function M.render(result)
  local only = #result.content == 1 and result.content[1].type == "text" and result.content[1].text or nil
  local ok, parsed = pcall(vim.json.decode, only or "")
  if ok and type(parsed) == "table" then
    return json.lines(parsed), "json"
  end
  if #result.content == 0 and result.structuredContent ~= nil then
    return json.lines(result.structuredContent), "json"
  end
  local lines = {}
  for place, content in ipairs(result.content) do
    if place > 1 then
      table.insert(lines, "")
    end
    vim.list_extend(lines, block(result.server, content))
  end
  if result.structuredContent ~= nil then
    vim.list_extend(lines, { "", "```json" })
    vim.list_extend(lines, json.lines(result.structuredContent))
    table.insert(lines, "```")
  end
  return lines, "markdown"
end

---Opens the link or file on the cursor's line.
local function follow()
  local line = vim.api.nvim_get_current_line()
  local target = line:match("%]%((mcp://[^%s]+)%)") or line:match("%]%(([^%s]+)%)") or line:match("mcp://%S+")
  if not target then
    return client.say("no link on this line")
  elseif vim.startswith(target, "mcp://") then
    require("mcp_sidecar.resources").open(target)
  else
    vim.ui.open(target)
  end
end

---@param origin mcp_sidecar.Origin
---@param lines string[]
local function put(origin, lines, replace)
  if not vim.api.nvim_buf_is_valid(origin.buffer) or not vim.bo[origin.buffer].modifiable then
    return client.say("the buffer that this call came from cannot be changed", vim.log.levels.WARN)
  end
  if replace and origin.first then
    vim.api.nvim_buf_set_lines(origin.buffer, origin.first - 1, origin.last, false, lines)
  else
    local row = origin.last or vim.api.nvim_buf_line_count(origin.buffer)
    if not origin.last and vim.api.nvim_win_is_valid(origin.window) then
      row = vim.api.nvim_win_get_cursor(origin.window)[1]
    end
    vim.api.nvim_buf_set_lines(origin.buffer, row, row, false, lines)
  end
end

local function help()
  look.peek({
    "`Y`  yank all of it",
    "`I`  insert it where the call came from",
    "`R`  put it in place of the lines that the call was made with",
    "`.`  call again",
    "`gf` `gx` `<CR>`  open the link or file on this line",
    "`q`  close",
  }, { title = "result" })
end

---@param result mcp_sidecar.Result
---@param origin mcp_sidecar.Origin
function M.show(result, origin)
  local lines, filetype = M.render(result)
  local buffer = look.buffer(("mcp-result://%s/%s"):format(result.server, result.tool), filetype)
  look.set_lines(buffer, lines)
  if filetype == "markdown" then
    pcall(vim.treesitter.start, buffer, "markdown")
  end
  look.map(buffer, "n", "q", look.close, "close")
  look.map(buffer, "n", "gf", follow, "open the link")
  look.map(buffer, "n", "gx", follow, "open the link")
  look.map(buffer, "n", "<CR>", follow, "open the link")
  look.map(buffer, "n", "Y", function()
    vim.fn.setreg('"', lines, "l")
    pcall(vim.fn.setreg, "+", lines, "l")
    client.say("yanked")
  end, "yank all")
  look.map(buffer, "n", "I", function()
    put(origin, lines, false)
  end, "insert where the call came from")
  look.map(buffer, "n", "R", function()
    put(origin, lines, true)
  end, "replace what the call was made with")
  look.map(buffer, "n", ".", function()
    require("mcp_sidecar.ui.form").again()
  end, "call again")
  look.map(buffer, "n", "g?", help, "help")
  -- Beside a form there is room; anywhere else below.
  local form = vim.fn.bufwinid(look.find(("mcp-call://%s/%s"):format(result.server, result.tool)) or -1)
  if vim.fn.bufwinid(buffer) == -1 and form ~= -1 then
    vim.api.nvim_set_current_win(form)
    look.show(buffer, vim.o.columns >= 100 and { vertical = true, split = "belowright" } or { split = "belowright" })
  else
    look.show(buffer)
  end
  vim.wo.wrap = true
  vim.wo.conceallevel = filetype == "markdown" and 2 or 0
  local hints = { { "Y", "yank" }, { "I", "insert" }, { "R", "replace" }, { ".", "again" }, { "g?", "help" } }
  vim.wo.winbar = ("%%#%s# %s %%#McpTool#%s  %%#McpMuted#%s  %s%%=%s"):format(
    result.isError and "McpFailed" or "McpConnected",
    result.isError and look.icon("failed") .. " error from" or look.icon("ok"),
    look.literal(result.tool),
    look.duration(result.durationMs),
    look.literal(result.decision),
    look.hints(hints)
  )
end

---Tries a server out and tells what it has.
---@param params { server?: string, config?: table }
function M.test(params)
  client.command("mcp.server.test", params, function(err, result)
    if err then
      return client.complain(err)
    end
    local lines = { ("%s  %s"):format(look.icon(result.success and "ok" or "failed"), result.message) }
    for _, part in ipairs({ "tools", "resources", "prompts" }) do
      for _, item in ipairs(result[part] or {}) do
        table.insert(lines, ("- %s `%s` %s"):format(part:sub(1, -2), item.name or item.uri, item.description or ""))
      end
    end
    look.peek(vim.split(table.concat(lines, "\n"), "\n"), { title = params.server or "test" })
  end)
end

return M
