--- Shows the result of a tool as markdown or JSON. Images and audio are saved to files, resources are links.

local client = require("mcp_sidecar.client")
local images = require("mcp_sidecar.ui.images")
local json = require("mcp_sidecar.json")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_result")

local OWNER_ONLY = assert(tonumber("600", 8))

-- The server chooses the media type; only these may set a file extension, which decides what opens the file.
local endings = { "gif", "jpeg", "mpeg", "ogg", "pdf", "png", "svg", "wav", "webp" }

local function cache()
  return vim.fs.normalize(vim.fn.stdpath("cache") --[[@as string]]) .. "/mcp_sidecar"
end

---Data as lines of markdown. Text is shown; anything else is saved in the cache, readable by the user only, as an image
---link: plugins that draw images in a terminal find it.
---@param data string base64
---@param mime? string
function M.keep(data, mime)
  if vim.startswith(mime or "", "text/") then return vim.split(vim.base64.decode(data), "\r?\n") end
  vim.fn.mkdir(cache(), "p", "0700")
  -- The name is a hash of the contents, so the server cannot choose it. `is_saved` knows the form of these names.
  local path = ("%s/%s.%s"):format(cache(), vim.fn.sha256(data):sub(1, 16), style.kind_of(mime, endings) or "bin")
  local file = assert(vim.uv.fs_open(path, "w", OWNER_ONLY))
  vim.uv.fs_write(file, vim.base64.decode(data))
  vim.uv.fs_close(file)
  local kind = (mime or ""):match("^[%w.+-]+/[%w.+-]+$")
  return { ("![%s](%s)"):format(kind and #kind < 100 and kind or "data", path) }
end

---Whether a link leads to a file that was saved here. A server can write any link, such as one with `..` in it.
---@param target string
local function is_saved(target)
  local folder, ending = target:match("^(.*)/" .. ("%x"):rep(16) .. "%.(%l+)$")
  return folder == cache() and (ending == "bin" or vim.tbl_contains(endings, ending))
end

---One content block as lines of markdown.
---@param content mcp_sidecar.Content
local function block(server, content)
  local kind, resource = content.type, content.resource or {}
  local function link(name, uri) return ("[%s](mcp://%s/%s)"):format(name, server, uri) end
  if kind == "text" then return vim.split(content.text or "", "\r?\n") end
  if content.data and (kind == "image" or kind == "audio") then return M.keep(content.data, content.mimeType) end
  if kind == "resource_link" then
    return { link(content.title or content.name or content.uri, content.uri), content.description }
  end
  if kind ~= "resource" then return json.lines(content) end
  local lines = { link(resource.uri, resource.uri), "" }
  if resource.blob then return vim.list_extend(lines, M.keep(resource.blob, resource.mimeType)) end
  return vim.list_extend(lines, vim.split(resource.text or "", "\r?\n"))
end

---Whether structured content says no more than the texts, as most servers send both.
---@param contents mcp_sidecar.Content[]
---@param structured any
local function repeats(contents, structured)
  local function is_said(value)
    return vim.iter(contents):any(function(content)
      if content.type ~= "text" then return false end
      if type(value) == "string" then return vim.trim(content.text) == vim.trim(value) end
      local ok, parsed = pcall(vim.json.decode, content.text)
      return ok and vim.deep_equal(parsed, value)
    end)
  end
  local key, only = next(type(structured) == "table" and structured or {})
  return is_said(structured) or (key ~= nil and next(structured, key) == nil and is_said(only))
end

---@param result { server: string, content: mcp_sidecar.Content[], structuredContent?: any }
---@return string[] lines, "markdown"|"json" filetype
function M.render(result)
  local only = #result.content == 1 and result.content[1].type == "text" and result.content[1].text or nil
  local ok, parsed = pcall(vim.json.decode, only or "")
  if ok and type(parsed) == "table" then return json.lines(parsed), "json" end
  if #result.content == 0 and result.structuredContent ~= nil then
    return json.lines(result.structuredContent), "json"
  end
  local lines = {}
  for place, content in ipairs(result.content) do
    if place > 1 then table.insert(lines, "") end
    vim.list_extend(lines, block(result.server, content))
  end
  if result.structuredContent ~= nil and not repeats(result.content, result.structuredContent) then
    table.insert(lines, "")
    windows.add_json(lines, result.structuredContent)
  end
  -- Names and descriptions may contain line breaks.
  return vim.split(table.concat(lines, "\n"), "\n"), "markdown"
end

---Draws the pictures of a result where the terminal can. Only files that were saved here are read.
---@param buffer integer
---@param lines string[]
function M.draw_pictures(buffer, lines)
  local pictures = {}
  for row, line in ipairs(lines) do
    local path = line:match("^!%[image/[^%]]*%]%(([^%s]+)%)$")
    if path and is_saved(path) then table.insert(pictures, { row = row - 1, path = path }) end
  end
  images.draw(buffer, pictures)
end

---Opens the link on the current line: a resource, a web page, or a saved file. Other links are not opened.
---@param outside? boolean open a picture in another program, even if this terminal can show it
local function follow(outside)
  local line = vim.api.nvim_get_current_line()
  local target = line:match("%]%((mcp://[^%s]+)%)") or line:match("%]%(([^%s]+)%)") or line:match("%a+://[^%s)>\"']+")
  if not target then return client.info("no link on this line") end
  if vim.startswith(target, "mcp://") then return require("mcp_sidecar.resources").open(target) end
  if not outside and is_saved(target) and line:match("^!%[image/") and images.show(target) then return end
  if target:match("^https?://") or is_saved(target) then return vim.ui.open(target) end
  client.warn(("not opened: `%s` is neither a web page nor a resource"):format(target))
end

---@param origin mcp_sidecar.Origin
local function put(origin, lines, replace)
  if not vim.api.nvim_buf_is_valid(origin.buffer) or not vim.bo[origin.buffer].modifiable then
    return client.warn("the buffer where the call was started cannot be changed")
  end
  local range = origin.range
  if replace and range then
    -- Whole lines are replaced with their current length.
    local whole = not origin.exact
      and #(vim.api.nvim_buf_get_lines(origin.buffer, range[3], range[3] + 1, false)[1] or "")
    pcall(vim.api.nvim_buf_set_text, origin.buffer, range[1], range[2], range[3], whole or range[4], lines)
    local last = #lines == 1 and range[2] + #lines[1] or #lines[#lines]
    origin.range = { range[1], range[2], range[1] + #lines - 1, last }
    return
  end
  local there = not range and vim.api.nvim_win_is_valid(origin.window)
  local row = there and vim.api.nvim_win_get_cursor(origin.window)[1]
    or range and range[3] + 1
    or vim.api.nvim_buf_line_count(origin.buffer)
  vim.api.nvim_buf_set_lines(origin.buffer, row, row, false, lines)
end

---@param result mcp_sidecar.ToolResult
---@param origin mcp_sidecar.Origin
function M.show(result, origin)
  local lines, filetype = M.render(result)
  local buffer = windows.buffer(("mcp-result://%s/%s"):format(result.server, result.tool), filetype)
  windows.set_lines(buffer, lines)
  if filetype == "markdown" then pcall(vim.treesitter.start, buffer, "markdown") end
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  for row, line in ipairs(filetype == "markdown" and lines or {}) do
    if line:match("^!?%[.*%]%(%S+%)$") then
      local hint = { { "  <CR>", "McpKey" }, { " opens it", "McpMuted" } }
      vim.api.nvim_buf_set_extmark(buffer, namespace, row - 1, 0, { virt_text = hint })
    end
  end
  local function yank()
    windows.yank(lines)
    client.info("yanked")
  end
  windows.keys(buffer, "result", {
    { "Y", yank, "yank the result" },
    { "I", function() put(origin, lines, false) end, "insert it where the call was started" },
    { "R", function() put(origin, lines, true) end, "replace the text that the call was made with" },
    { ".", function() require("mcp_sidecar.ui.call").again() end, "call again" },
    { "e", function() require("mcp_sidecar.ui.call").change(result, origin) end, "change the arguments, call again" },
    { "gf <CR>", function() follow() end, "open the link on this line" },
    { "gx", function() follow(true) end, "the same, in another program" },
  })
  -- Next to the form if there is room, else instead of it.
  local form, mods = windows.window_of(("mcp-call://%s/%s"):format(result.server, result.tool)), nil
  local is_split = form and vim.api.nvim_win_get_config(form).relative == ""
  if form and is_split and not windows.is_narrow() then
    vim.api.nvim_set_current_win(form)
    mods = { vertical = true, split = "belowright" }
  end
  if filetype == "markdown" then M.draw_pictures(buffer, lines) end
  local mark, group = style.outcome(not result.isError)
  local bar = windows.winbar({
    { (result.isError and " %s error from " or " %s "):format(mark), group },
    { result.tool, "McpTool" },
    { "  " .. style.duration(result.durationMs), "McpMuted" },
  }, {
    { "Y", "yank" },
    { "I", "insert" },
    { "R", "replace" },
    { "e", "change" },
    { ".", "again" },
    { "?", "help" },
  }, { { "  " .. result.decision, "McpMuted" } })
  local instead = not mods and form and "mcp-call://" or nil
  local window = windows.show(buffer, { mods = mods, winbar = bar, wrap = true, instead = instead, rows = #lines + 2 })
  vim.wo[window].conceallevel = filetype == "markdown" and 2 or 0
  vim.wo[window].linebreak = filetype == "markdown"
  -- Long JSON starts folded.
  vim.wo[window].foldmethod = filetype == "json" and "indent" or "manual"
  vim.wo[window].foldlevel = #lines > vim.api.nvim_win_get_height(window) and 2 or 99
  vim.bo[buffer].shiftwidth = 2
end

---Tests a server and shows what it has.
---@param params { server?: string, config?: table }
function M.test(params)
  client.fetch("mcp.server.test", params, function(result)
    local took = ("%s  %s, in %s"):format(
      (style.outcome(result.success)),
      result.message,
      style.duration(result.latencyMs)
    )
    local lines = { took, "" }
    for _, part in ipairs({ "tools", "resources", "prompts" }) do
      for _, item in ipairs(result[part] or {}) do
        local text = style.fit(item.description, math.max(20, vim.o.columns - 40))
        table.insert(lines, ("- %s `%s` %s"):format(part:sub(1, -2), item.name or item.uri, text))
      end
    end
    windows.peek(lines, params.server or "test")
  end)
end

return M
