--- Arguments of a tool as a JSON buffer made from its schema, and the call itself.
--- What is valid is the sidecar's to say; its complaints land on their lines as diagnostics.

local client = require("mcp_sidecar.client")
local fields = require("mcp_sidecar.ui.fields")
local json = require("mcp_sidecar.json")
local look = require("mcp_sidecar.ui.look")
local template = require("mcp_sidecar.ui.template")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_form")
local problems = vim.api.nvim_create_namespace("mcp_sidecar_form_problems")

---@class mcp_sidecar.Form
---@field tool mcp_sidecar.Tool
---@field origin mcp_sidecar.Origin
---@field cancel? fun() while a call runs

---@class mcp_sidecar.Origin where a result may be put
---@field buffer integer
---@field window integer
---@field first? integer
---@field last? integer

---@type table<integer, mcp_sidecar.Form>
local forms = {}
---@type table<string, string[]> the last arguments of each tool, as they were written
local history = {}
---@type { name: string, arguments: table }?
local last_call

---@return mcp_sidecar.Origin
function M.origin(range)
  local origin = { buffer = vim.api.nvim_get_current_buf(), window = vim.api.nvim_get_current_win() }
  if range then
    origin.first, origin.last = range[1], range[2]
  end
  return origin
end

---Where each top-level key stands: name → line from 0.
local function places(buffer)
  local found = {}
  for row, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    local name = line:match('^  ?%s?%s?"([^"]+)"%s*:')
    if name and not found[name] then
      found[name] = row - 1
    end
  end
  return found
end

---What the schema says, as text that is not part of the buffer.
local function annotate(buffer)
  local form = forms[buffer]
  local schema = form.tool.inputSchema
  local names, required = fields.order(schema)
  local found, missing = places(buffer), {}
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  for _, name in ipairs(names) do
    local field, row = schema.properties[name], found[name]
    if row then
      local above = {}
      if type(field.description) == "string" then
        table.insert(above, { { "  " .. look.fit(field.description, vim.o.columns - 6), "McpMuted" } })
      end
      vim.api.nvim_buf_set_extmark(buffer, namespace, row, 0, {
        virt_lines = #above > 0 and above or nil,
        virt_lines_above = true,
        virt_text = {
          { required[name] and "  required " or "  optional ", required[name] and "McpAsks" or "McpMuted" },
          { template.constraint(field), "McpMuted" },
        },
      })
    else
      table.insert(missing, name)
    end
  end
  local below = {}
  if #missing > 0 then
    table.insert(below, { { "  + adds ", "McpMuted" }, { table.concat(missing, ", "), "McpKey" } })
  end
  vim.api.nvim_buf_set_extmark(buffer, namespace, vim.api.nvim_buf_line_count(buffer) - 1, 0, { virt_lines = below })
end

local function header(buffer, state)
  local window, tool = vim.fn.bufwinid(buffer), forms[buffer].tool
  if window == -1 then
    return
  end
  local manner, group = look.manner(tool.annotations)
  vim.wo[window].winbar = ("%%#McpServer# %s %%#McpMuted#› %%#McpTool#%s  %%#%s#%s%%#McpMuted#  %s%%=%s"):format(
    look.literal(tool.server),
    look.literal(tool.tool),
    group,
    manner,
    look.literal(state or tool.level),
    state and look.hints({ { "<C-c>", "cancel" } })
      or look.hints({ { "<CR>", "call" }, { "<Tab>", "choose" }, { "+", "add" }, { "g?", "help" } })
  )
end

---The arguments as written, or nil with the place where they stop being JSON.
local function read(buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
  local ok, value = pcall(vim.json.decode, text)
  if ok and type(value) == "table" and (not vim.islist(value) or next(value) == nil) then
    return next(value) and value or vim.empty_dict()
  end
  local at = not ok and tonumber(tostring(value):match("at character (%d+)")) or 1
  local row = select(2, text:sub(1, at - 1):gsub("\n", ""))
  local message = ok and "the arguments must be an object" or "not JSON: " .. tostring(value):gsub("^.-: ", "")
  vim.diagnostic.set(problems, buffer, { { lnum = row, col = 0, message = message, source = "mcp-sidecar" } })
end

---Puts the sidecar's complaints where they belong.
local function complain(buffer, err)
  local found, list = places(buffer), {}
  for _, problem in ipairs(err.data and err.data.detail or {}) do
    local name = (problem.path or ""):match("^/([^/]+)")
    name = name and name:gsub("~1", "/"):gsub("~0", "~")
    table.insert(list, { lnum = found[name] or 0, col = 0, message = problem.message, source = "mcp-sidecar" })
  end
  if #list == 0 then
    table.insert(list, { lnum = 0, col = 0, message = err.message, source = "mcp-sidecar" })
  end
  vim.diagnostic.set(problems, buffer, list)
end

---Calls the tool with what the form says. The user has just read it, so it needs no second question.
local function submit(buffer)
  local form = forms[buffer]
  if form.cancel then
    return client.say("this call is still running; <C-c> cancels it")
  end
  vim.diagnostic.reset(problems, buffer)
  local arguments = read(buffer)
  if not arguments then
    return
  end
  vim.bo[buffer].modified = false
  history[form.tool.name] = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  header(buffer, "running…")
  form.cancel = M.send(form.tool, arguments, form.origin, {
    decision = "allow-once",
    progress = function(text)
      if vim.api.nvim_buf_is_valid(buffer) then
        header(buffer, text)
      end
    end,
    done = function(err)
      form.cancel = nil
      if vim.api.nvim_buf_is_valid(buffer) then
        header(buffer)
        if err and err.data and err.data.kind == "invalid-arguments" then
          complain(buffer, err)
          return true
        end
      end
    end,
  })
end

---Sends a call and shows what comes of it.
---@param tool mcp_sidecar.Tool
---@param arguments table
---@param origin mcp_sidecar.Origin
---@param opts { decision?: string, progress?: fun(text: string), done?: fun(err?: table): boolean? }
function M.send(tool, arguments, origin, opts)
  last_call = { tool = tool, arguments = arguments }
  return client.command("mcp.tool.call", {
    tool = tool.name,
    arguments = next(arguments) and arguments or nil,
    decision = opts.decision,
  }, function(err, result)
    local handled = opts.done and opts.done(err)
    if err and err.code == -32800 then
      client.say(("%s was cancelled"):format(tool.tool))
    elseif err and not handled then
      client.complain(err)
    elseif result then
      require("mcp_sidecar.ui.result").show(result, origin)
    end
  end, {
    progress = function(value)
      if opts.progress and value.kind ~= "end" then
        local percent = value.percentage and (" %d %%"):format(value.percentage) or ""
        opts.progress(("running%s %s"):format(percent, value.message or ""))
      end
    end,
  })
end

---The key on the cursor's line.
local function field_here(buffer)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  for name, place in pairs(places(buffer)) do
    if place == row then
      return name, forms[buffer].tool.inputSchema.properties[name], row
    end
  end
end

---Sets the value of the field under the cursor from what the schema offers.
local function choose(buffer)
  local name, field, row = field_here(buffer)
  local values = field and (field.type == "boolean" and { true, false } or field.enum)
  if type(values) ~= "table" then
    return client.say("the schema offers no values for this field")
  end
  vim.ui.select(values, { prompt = name .. ": ", kind = "mcp_value", format_item = tostring }, function(value)
    if value ~= nil then
      local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1]
      local head, comma = line:match('^(%s*"[^"]+"%s*:%s*)'), line:match(",%s*$") or ""
      vim.api.nvim_buf_set_lines(buffer, row, row + 1, false, { head .. vim.json.encode(value) .. comma })
    end
  end)
end

---Adds a field that the form has left out.
local function add(buffer)
  local schema, found = forms[buffer].tool.inputSchema, places(buffer)
  local missing = vim.tbl_filter(function(name)
    return not found[name]
  end, (fields.order(schema)))
  if #missing == 0 then
    return client.say("every field is there")
  end
  vim.ui.select(missing, { prompt = "Add a field: ", kind = "mcp_field" }, function(name)
    local arguments = name and read(buffer)
    if arguments then
      arguments[name] = template.example(schema.properties[name])
      vim.api.nvim_buf_set_lines(buffer, 0, -1, false, template.lines(schema, arguments))
      annotate(buffer)
      vim.api.nvim_win_set_cursor(0, { (places(buffer)[name] or 0) + 1, 0 })
    end
  end)
end

local function help()
  look.peek({
    "`<CR>`  or `:w`: call the tool with what stands here",
    "`<Tab>`  choose among the values that the schema offers",
    "`+`  add a field that was left out",
    "`<C-c>`  cancel the call that runs",
    "`K`  what the tool says about itself",
    "`H`  the arguments of the last call",
    "`q`  close",
  }, { title = "call a tool" })
end

local function describe(tool)
  local lines = vim.split(tool.description or "", "\n")
  vim.list_extend(lines, { "", ("level `%s` from %s"):format(tool.level, tool.source), "", "```json" })
  vim.list_extend(lines, json.lines(tool.inputSchema))
  table.insert(lines, "```")
  look.peek(lines, { title = tool.name })
end
M.describe = describe

---@param tool mcp_sidecar.Tool
---@param opts { arguments?: table, origin: mcp_sidecar.Origin }
local function open(tool, opts)
  local buffer = look.buffer(("mcp-call://%s/%s"):format(tool.server, tool.tool), "json")
  vim.bo[buffer].buftype = "acwrite"
  vim.bo[buffer].modifiable = true
  if not forms[buffer] then
    vim.api.nvim_create_autocmd("BufWriteCmd", {
      buffer = buffer,
      callback = function()
        submit(buffer)
      end,
    })
    vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI" }, {
      buffer = buffer,
      callback = function()
        annotate(buffer)
      end,
    })
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = buffer,
      callback = function()
        forms[buffer] = nil
      end,
    })
  end
  forms[buffer] = { tool = tool, origin = opts.origin }
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, template.lines(tool.inputSchema, opts.arguments or {}))
  vim.bo[buffer].modified = false
  local function on(keys, run, desc)
    look.map(buffer, "n", keys, function()
      run(buffer)
    end, desc)
  end
  on("<CR>", submit, "call")
  on("<Tab>", choose, "choose a value")
  on("+", add, "add a field")
  on("g?", help, "help")
  on("K", function()
    describe(tool)
  end, "about the tool")
  on("H", function()
    if history[tool.name] then
      vim.api.nvim_buf_set_lines(buffer, 0, -1, false, history[tool.name])
    end
  end, "the last arguments")
  look.map(buffer, { "n", "i" }, "<C-c>", function()
    if forms[buffer].cancel then
      forms[buffer].cancel()
    else
      vim.cmd.stopinsert()
    end
  end, "cancel")
  look.map(buffer, "n", "q", look.close, "close")
  local window = look.show(buffer)
  vim.wo[window].conceallevel = 0
  vim.wo[window].wrap = true
  annotate(buffer)
  header(buffer)
  -- On the first value, inside its quotes: ready to type.
  local value = (vim.api.nvim_buf_get_lines(buffer, 1, 2, false)[1] or ""):match('^%s*"[^"]+": "?()')
  vim.api.nvim_win_set_cursor(window, { math.min(2, vim.api.nvim_buf_line_count(buffer)), (value or 1) - 1 })
end

---Opens the form of a tool, or calls one that takes no arguments.
---@param name string
---@param opts? { arguments?: table, origin?: mcp_sidecar.Origin, text?: string }
function M.start(name, opts)
  opts = opts or {}
  local origin = opts.origin or M.origin()
  name = require("mcp_sidecar").tool_name(name)
  require("mcp_sidecar").tools(function(err, tools)
    if err then
      return client.complain(err)
    end
    for _, tool in ipairs(tools or {}) do
      if tool.name == name then
        if #fields.order(tool.inputSchema) == 0 then
          return M.send(tool, vim.empty_dict(), origin, {})
        end
        local arguments = opts.arguments or (opts.text and template.with_text(tool, opts.text))
        return open(tool, { arguments = arguments, origin = origin })
      end
    end
    client.complain({ message = ("no tool named `%s`; is its server connected?"):format(name) })
  end, { all = true })
end

---Lets the user pick a tool.
---@param opts? { origin?: mcp_sidecar.Origin, text?: string, server?: string }
function M.pick(opts)
  opts = opts or {}
  opts.origin = opts.origin or M.origin()
  require("mcp_sidecar").tools(function(err, tools)
    if err or #(tools or {}) == 0 then
      return client.complain(err or { message = "no tools: no server is connected yet" })
    end
    vim.ui.select(tools, {
      prompt = "Call: ",
      kind = "mcp_tool",
      format_item = function(tool)
        return ("%s/%s  %s"):format(tool.server, tool.tool, look.fit(tool.description, 60))
      end,
    }, function(tool)
      if tool then
        M.start(tool.name, opts)
      end
    end)
  end, { server = opts.server })
end

---Lets the user pick a tool for a place in a file, as a code action names it: its text, or else its line.
---@param uri string
---@param range lsp.Range
function M.pick_for(uri, range)
  local buffer = vim.uri_to_bufnr(uri)
  local first, last = range.start.line + 1, range["end"].line + 1
  local lines = vim.api.nvim_buf_get_lines(buffer, first - 1, last, false)
  local origin = { buffer = buffer, window = vim.api.nvim_get_current_win(), first = first, last = last }
  M.pick({ origin = origin, text = table.concat(lines, "\n") })
end

---The last call again, with the same arguments; the policy is asked anew.
function M.again()
  if not last_call then
    return client.say("no tool was called yet")
  end
  M.send(last_call.tool, last_call.arguments, M.origin(), {})
end

return M
