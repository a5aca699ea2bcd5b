--- A JSON buffer made from a schema: the arguments of a tool, or what a server asks of the user.
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
---@field name string of the buffer
---@field schema table
---@field title { [1]: string, [2]: string }[] text and highlight group
---@field note string what stands behind the title
---@field verb string what <CR> does
---@field origin mcp_sidecar.Origin
---@field send fun(values: table, report: mcp_sidecar.Report): fun()? returns what cancels it
---@field about fun() tells all about it
---@field cancel? fun() while it is under way

---@class mcp_sidecar.Report what a form is told about what it sent
---@field progress fun(text: string)
---@field done fun(err?: mcp_sidecar.Error): boolean? true when the form shows the error itself

---@type table<integer, mcp_sidecar.Form> by buffer
local forms = {}
---@type table<string, string[]> what was sent last from each form, as it was written
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
  local schema = forms[buffer].schema
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

---@param state? string what is under way
local function header(buffer, state)
  local window, form = vim.fn.bufwinid(buffer), forms[buffer]
  if window == -1 then return end
  local chunks = vim.list_extend(vim.list_slice(form.title), { { "  " .. (state or form.note), "McpMuted" } })
  local keys = { { "<CR>", form.verb }, { "<Tab>", "choose" }, { "+", "add" }, { "g?", "help" } }
  vim.wo[window].winbar = look.winbar(chunks, state and { { "<C-c>", "cancel" } } or keys)
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

---The values as written, or nil with a mark at the place where they stop being JSON.
---@return table?
local function read(buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
  local ok, value = pcall(vim.json.decode, text)
  if ok and type(value) == "table" and (not vim.islist(value) or next(value) == nil) then
    return next(value) and value or vim.empty_dict()
  end
  local at = not ok and tonumber(tostring(value):match("at character (%d+)")) or 1
  local row = select(2, text:sub(1, at - 1):gsub("\n", ""))
  local why = ok and "the whole must be an object" or "not JSON: " .. tostring(value):gsub("^.-: ", "")
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

---Sends what the form says. The user has just read it, so it needs no second question.
local function submit(buffer)
  local form = forms[buffer]
  if form.cancel then return client.say("this is still under way; <C-c> cancels it") end
  vim.diagnostic.reset(problems, buffer)
  local values = read(buffer)
  if not values then return end
  vim.bo[buffer].modified = false
  history[form.name] = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  header(buffer, "running…")
  form.cancel = form.send(values, {
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
---@return { title: string, value: any }[]
local function offers(field, origin)
  local list = fields.values(field)
  if list or field.type ~= "string" or not vim.api.nvim_buf_is_valid(origin.buffer) then return list or {} end
  local text = call.text(origin)
  local path = vim.bo[origin.buffer].buftype == "" and vim.api.nvim_buf_get_name(origin.buffer) or ""
  list = text and { { title = "the selection: " .. text, value = text } } or {}
  if path ~= "" then
    local all = table.concat(vim.api.nvim_buf_get_lines(origin.buffer, 0, -1, false), "\n")
    table.insert(list, { title = "the file's name: " .. vim.fn.fnamemodify(path, ":~:."), value = path })
    table.insert(list, { title = "the file's text: " .. all, value = all })
  end
  return list
end

---Writes a value into the form, and goes there.
local function set(buffer, name, value)
  local values, schema = read(buffer), forms[buffer].schema
  if not values then return end
  local several = schema.properties[name].type == "array" and type(value) ~= "table"
  local before = type(values[name]) == "table" and values[name] or {}
  if several and vim.tbl_contains(before, value) then return end
  values[name] = several and vim.list_extend(vim.list_slice(before), { value }) or value
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, template.lines(schema, values))
  annotate(buffer)
  vim.api.nvim_win_set_cursor(0, { (M.places(buffer)[name] or 0) + 1, 0 })
end

---Sets the field under the cursor to a value that is offered; to a list, it is added.
local function choose(buffer)
  local row, form = vim.api.nvim_win_get_cursor(0)[1] - 1, forms[buffer]
  local name, above = nil, -1
  for each, place in pairs(M.places(buffer)) do
    if place <= row and place > above then
      name, above = each, place
    end
  end
  local field = name and form.schema.properties[name]
  local list = field and offers(field, form.origin) or {}
  if #list == 0 then return client.say("nothing to choose from for this field") end
  local opts = { prompt = name .. ": ", kind = "mcp_value", format = function(item) return tostring(item.title) end }
  look.choose(list, opts, function(item) set(buffer, name, item.value) end)
end

---Adds a field that the form has left out.
local function add(buffer)
  local schema, found = forms[buffer].schema, M.places(buffer)
  local missing = vim.tbl_filter(function(name) return not found[name] end, (fields.order(schema)))
  if #missing == 0 then return client.say("every field is there") end
  look.choose(
    missing,
    { prompt = "Add a field: ", kind = "mcp_field" },
    function(name) set(buffer, name, template.example(schema.properties[name])) end
  )
end

local function cancel(buffer)
  if forms[buffer].cancel then return forms[buffer].cancel() end
  vim.cmd.stopinsert()
end

local function recall(buffer)
  local lines = history[forms[buffer].name]
  if lines then vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines) end
end

---A buffer for a form, with what its keys and events do.
---@param form mcp_sidecar.Form
local function make_buffer(form)
  local buffer = look.buffer(form.name, "json")
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
  look.keys(buffer, form.verb, {
    { "<CR>", here(submit), ("(or `:w`) %s with what stands here"):format(form.verb) },
    { "<Tab>", here(choose), "choose a value: from the schema, the selection, the file" },
    { "+", here(add), "add a field that was left out" },
    { "<C-c>", here(cancel), "cancel what is under way", mode = { "n", "i" } },
    { "K", function() forms[buffer].about() end, "all about it" },
    { "H", here(recall), "what was sent last" },
  })
  return buffer
end

---@param form mcp_sidecar.Form
---@param values table to begin with
function M.open(form, values)
  local buffer = make_buffer(form)
  forms[buffer] = form
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, template.lines(form.schema, values))
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
