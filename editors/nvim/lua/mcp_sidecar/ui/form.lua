--- Arguments of a tool as a JSON buffer made from its schema.
--- What is valid is the sidecar's to say; its complaints land on their lines as diagnostics.

local call = require("mcp_sidecar.ui.call")
local client = require("mcp_sidecar.client")
local fields = require("mcp_sidecar.ui.fields")
local look = require("mcp_sidecar.ui.look")
local template = require("mcp_sidecar.ui.template")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_form")
local problems = vim.api.nvim_create_namespace("mcp_sidecar_form_problems")

---@class mcp_sidecar.Form
---@field tool mcp_sidecar.Tool
---@field origin mcp_sidecar.Origin
---@field cancel? fun() while a call runs

---@type table<integer, mcp_sidecar.Form> by buffer
local forms = {}
---@type table<string, string[]> the last arguments of each tool, as they were written
local history = {}

---@param buffer integer
---@return mcp_sidecar.Form?
function M.of(buffer) return forms[buffer] end

---Where each top-level key stands: name → line from 0.
---@param buffer integer
---@return table<string, integer>
function M.places(buffer)
  local found = {}
  for row, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    local name = line:match('^%s?%s?%s?%s?"([^"]+)"%s*:')
    if name and not found[name] then found[name] = row - 1 end
  end
  return found
end

---What the schema says, as text that is not part of the buffer.
local function annotate(buffer)
  local schema = forms[buffer].tool.inputSchema
  local names, required = fields.order(schema)
  local found, missing = M.places(buffer), {}
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  for _, name in ipairs(names) do
    local field, row = schema.properties[name], found[name]
    if row then
      local above = type(field.description) == "string" and look.wrap(field.description, vim.o.columns - 6) or {}
      vim.api.nvim_buf_set_extmark(buffer, namespace, row, 0, {
        virt_lines = vim.tbl_map(function(line) return { { "  " .. line, "McpMuted" } } end, above),
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
  local below = #missing > 0 and { { { "  + adds ", "McpMuted" }, { table.concat(missing, ", "), "McpKey" } } } or {}
  vim.api.nvim_buf_set_extmark(buffer, namespace, vim.api.nvim_buf_line_count(buffer) - 1, 0, { virt_lines = below })
end

---@param state? string what the call that runs is doing
local function header(buffer, state)
  local window, tool = vim.fn.bufwinid(buffer), forms[buffer].tool
  if window == -1 then return end
  local manner, group = look.manner(tool.annotations)
  vim.wo[window].winbar = look.winbar(
    {
      { " " .. tool.server, "McpServer" },
      { " › ", "McpMuted" },
      { tool.tool, "McpTool" },
      { "  " .. manner, group },
      { "  " .. (state or tool.level), "McpMuted" },
    },
    state and { { "<C-c>", "cancel" } }
      or { { "<CR>", "call" }, { "<Tab>", "choose" }, { "+", "add" }, { "g?", "help" } }
  )
end

---@param list { row: integer, message: string }[]
local function mark(buffer, list)
  vim.diagnostic.set(
    problems,
    buffer,
    vim.tbl_map(
      function(one) return { lnum = one.row, col = 0, message = one.message, source = "mcp-sidecar" } end,
      list
    )
  )
end

---The arguments as written, or nil with a mark at the place where they stop being JSON.
---@return table?
local function read(buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
  local ok, value = pcall(vim.json.decode, text)
  if ok and type(value) == "table" and (not vim.islist(value) or next(value) == nil) then
    return next(value) and value or vim.empty_dict()
  end
  local at = not ok and tonumber(tostring(value):match("at character (%d+)")) or 1
  local row = select(2, text:sub(1, at - 1):gsub("\n", ""))
  local why = ok and "the arguments must be an object" or "not JSON: " .. tostring(value):gsub("^.-: ", "")
  mark(buffer, { { row = row, message = why } })
end

---Puts the sidecar's complaints where they belong.
---@param err mcp_sidecar.Error
local function complain(buffer, err)
  local found, list = M.places(buffer), {}
  for _, problem in ipairs(err.data and err.data.detail or {}) do
    local name = (problem.path or ""):match("^/([^/]+)")
    name = name and name:gsub("~1", "/"):gsub("~0", "~")
    table.insert(list, { row = found[name] or 0, message = problem.message })
  end
  mark(buffer, #list > 0 and list or { { row = 0, message = err.message } })
end

---Calls the tool with what the form says. The user has just read it, so it needs no second question.
local function submit(buffer)
  local form = forms[buffer]
  if form.cancel then return client.say("this call is still running; <C-c> cancels it") end
  vim.diagnostic.reset(problems, buffer)
  local arguments = read(buffer)
  if not arguments then return end
  vim.bo[buffer].modified = false
  history[form.tool.name] = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  header(buffer, "running…")
  form.cancel = call.send(form.tool, arguments, form.origin, {
    decision = "allow-once",
    progress = function(text)
      if vim.api.nvim_buf_is_valid(buffer) then header(buffer, text) end
    end,
    done = function(err)
      form.cancel = nil
      if not vim.api.nvim_buf_is_valid(buffer) then return end
      header(buffer)
      if err and err.data and err.data.kind == "invalid-arguments" then
        complain(buffer, err)
        return true
      end
    end,
  })
end

---What may stand in a field: what its schema says, else what the user was looking at.
---@return { label: string, value: any }[]
local function offers(field, origin)
  local function offer(value) return { label = tostring(value), value = value } end
  if field.type == "boolean" then return { offer(true), offer(false) } end
  if type(field.enum) == "table" then return vim.tbl_map(offer, field.enum) end
  if field.type ~= "string" or not vim.api.nvim_buf_is_valid(origin.buffer) then return {} end
  local list, text = {}, call.text(origin)
  local path = vim.bo[origin.buffer].buftype == "" and vim.api.nvim_buf_get_name(origin.buffer) or ""
  if text then table.insert(list, { label = "the selection: " .. look.fit(text, 50), value = text }) end
  if path ~= "" then
    local all = table.concat(vim.api.nvim_buf_get_lines(origin.buffer, 0, -1, false), "\n")
    table.insert(list, { label = "the file's name: " .. vim.fn.fnamemodify(path, ":~:."), value = path })
    table.insert(list, { label = "the file's text: " .. look.fit(all, 50), value = all })
  end
  return list
end

---Sets the value of the field under the cursor to one that is offered.
local function choose(buffer)
  local row, form = vim.api.nvim_win_get_cursor(0)[1] - 1, forms[buffer]
  local name = vim.iter(pairs(M.places(buffer))):find(function(_, place) return place == row end)
  local field = name and form.tool.inputSchema.properties[name]
  local list = field and offers(field, form.origin) or {}
  if #list == 0 then return client.say("nothing to choose from for this field") end
  local opts = { prompt = name .. ": ", kind = "mcp_value", format = function(item) return item.label end }
  look.choose(list, opts, function(item)
    local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1]
    local head, comma = line:match('^(%s*"[^"]+"%s*:%s*)'), line:match(",%s*$") or ""
    vim.api.nvim_buf_set_lines(buffer, row, row + 1, false, { head .. vim.json.encode(item.value) .. comma })
  end)
end

---Adds a field that the form has left out.
local function add(buffer)
  local schema, found = forms[buffer].tool.inputSchema, M.places(buffer)
  local missing = vim.tbl_filter(function(name) return not found[name] end, (fields.order(schema)))
  if #missing == 0 then return client.say("every field is there") end
  look.choose(missing, { prompt = "Add a field: ", kind = "mcp_field" }, function(name)
    local arguments = read(buffer)
    if not arguments then return end
    arguments[name] = template.example(schema.properties[name])
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, template.lines(schema, arguments))
    annotate(buffer)
    vim.api.nvim_win_set_cursor(0, { (M.places(buffer)[name] or 0) + 1, 0 })
  end)
end

local function cancel(buffer)
  if forms[buffer].cancel then return forms[buffer].cancel() end
  vim.cmd.stopinsert()
end

local function recall(buffer)
  local lines = history[forms[buffer].tool.name]
  if lines then vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines) end
end

---A buffer for one tool, with what its keys and events do.
local function make_buffer(tool)
  local buffer = look.buffer(("mcp-call://%s/%s"):format(tool.server, tool.tool), "json")
  vim.bo[buffer].buftype = "acwrite"
  vim.bo[buffer].omnifunc = "v:lua.require'mcp_sidecar.ui.complete'.omni"
  vim.bo[buffer].modifiable = true
  if forms[buffer] then return buffer end
  local function here(run)
    return function() run(buffer) end
  end
  local function on(events, run) vim.api.nvim_create_autocmd(events, { buffer = buffer, callback = here(run) }) end
  on("BufWriteCmd", submit)
  on({ "TextChanged", "TextChangedI" }, annotate)
  on("BufWipeout", function() forms[buffer] = nil end)
  look.keys(buffer, "call a tool", {
    { "<CR>", here(submit), "(or `:w`) call the tool with what stands here" },
    { "<Tab>", here(choose), "choose a value: from the schema, the selection, the file" },
    { "+", here(add), "add a field that was left out" },
    { "<C-c>", here(cancel), "cancel the call that runs", mode = { "n", "i" } },
    { "K", function() call.describe(forms[buffer].tool) end, "what the tool says about itself" },
    { "H", here(recall), "the arguments of the last call" },
  })
  return buffer
end

---@param tool mcp_sidecar.Tool
---@param arguments table to begin with
---@param origin mcp_sidecar.Origin
function M.open(tool, arguments, origin)
  local buffer = make_buffer(tool)
  forms[buffer] = { tool = tool, origin = origin }
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, template.lines(tool.inputSchema, arguments))
  vim.bo[buffer].modified = false
  local window = look.show(buffer, { wrap = true })
  vim.wo[window].conceallevel = 0
  annotate(buffer)
  header(buffer)
  -- On the first value, inside its quotes: ready to type.
  local value = (vim.api.nvim_buf_get_lines(buffer, 1, 2, false)[1] or ""):match('^%s*"[^"]+": "?()')
  vim.api.nvim_win_set_cursor(window, { math.min(2, vim.api.nvim_buf_line_count(buffer)), (value or 1) - 1 })
end

return M
