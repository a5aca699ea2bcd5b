--- A JSON buffer made from a schema: the arguments of a tool, or the answer to a question of a server.
--- The sidecar validates it; its errors are shown as diagnostics.

local call = require("mcp_sidecar.ui.call")
local client = require("mcp_sidecar.client")
local schemas = require("mcp_sidecar.ui.schema")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_form")
local problems = vim.api.nvim_create_namespace("mcp_sidecar_form_problems")
-- Errors are always shown next to their field, whatever the user has configured; before 0.11 at the end of the line.
local in_lines = vim.fn.has("nvim-0.11") == 1
vim.diagnostic.config({ virtual_lines = in_lines, virtual_text = not in_lines, signs = false }, problems)

---@class mcp_sidecar.FormSpec
---@field name string of the buffer
---@field schema mcp_sidecar.Schema
---@field title mcp_sidecar.Chunk[]
---@field note string shown after the title
---@field verb string what <CR> does
---@field origin mcp_sidecar.Origin
---@field send fun(values: table, report: mcp_sidecar.Report): fun()? returns a function that cancels it
---@field about fun() shows the details

---@class mcp_sidecar.Form: mcp_sidecar.FormSpec
---@field buffer integer
---@field cancel? fun() while it is running

---@class mcp_sidecar.Report how a form learns about what it sent
---@field progress fun(text: string)
---@field done fun(err?: mcp_sidecar.Error): boolean? true when the form shows the error itself

---@type table<integer, mcp_sidecar.Form?> by buffer
local forms = {}
---@type table<string, string[]?> the text that was last sent from each form
local history = {}

---@param buffer integer
---@return mcp_sidecar.Form?
function M.of(buffer) return forms[buffer] end

---@param form mcp_sidecar.Form
---@return string[]
local function lines_of(form) return vim.api.nvim_buf_get_lines(form.buffer, 0, -1, false) end

---The line of each top-level key, from 0.
---@param form mcp_sidecar.Form
---@return table<string, integer?>
local function places(form)
  local found = {}
  for row, line in ipairs(lines_of(form)) do
    local name = line:match('^%s?%s?%s?%s?"([^"]+)"%s*:')
    if name and not found[name] then found[name] = row - 1 end
  end
  return found
end

---The fields that the form does not have.
---@param form mcp_sidecar.Form
---@return string[]
function M.missing(form)
  local found = places(form)
  return vim.tbl_filter(function(name) return not found[name] end, (schemas.order(form.schema)))
end

---Shows the descriptions and constraints of the schema as virtual text.
---@param form mcp_sidecar.Form
local function annotate(form)
  local found, missing = places(form), M.missing(form)
  local names, required = schemas.order(form.schema)
  vim.api.nvim_buf_clear_namespace(form.buffer, namespace, 0, -1)
  for _, name in ipairs(names) do
    local field, row = schemas.field(form.schema, name), found[name]
    local words = type(field.description) == "string" and style.wrap(field.description, vim.o.columns - 6) or {}
    if row then
      vim.api.nvim_buf_set_extmark(form.buffer, namespace, row, 0, {
        virt_lines = vim.tbl_map(function(line) return { { "  " .. line, "McpMuted" } } end, words),
        virt_lines_above = true,
        virt_text = {
          { required[name] and "  required " or "  optional ", required[name] and "McpWarn" or "McpMuted" },
          { schemas.constraint(field), "McpMuted" },
        },
      })
    end
  end
  local below = #missing > 0 and { { { "  + adds ", "McpMuted" }, { table.concat(missing, ", "), "McpKey" } } } or {}
  vim.api.nvim_buf_set_extmark(form.buffer, namespace, #lines_of(form) - 1, 0, { virt_lines = below })
end

---@param form mcp_sidecar.Form
---@param state? string what is running
local function header(form, state)
  local window = windows.window_of(form.name)
  if not window then return end
  local chunks = vim.list_extend(vim.list_slice(form.title), { { "  " .. (state or form.note), "McpMuted" } })
  local keys = { { "<CR>", form.verb }, { "<Tab>", "choose" }, { "+", "add" }, { "?", "help" } }
  vim.wo[window].winbar = windows.winbar(chunks, state and { { "<C-c>", "cancel" } } or keys)
end

---@param row integer
---@param message string
---@return vim.Diagnostic.Set
local function problem(row, message) return { lnum = row, col = 0, message = message, source = "mcp-sidecar" } end

---The values, or nil with a diagnostic where the text is not JSON.
---@param form mcp_sidecar.Form
---@return table<string, any>?
local function read(form)
  local text = table.concat(lines_of(form), "\n")
  local ok, value = pcall(vim.json.decode, text)
  if ok and type(value) == "table" and (not vim.islist(value) or next(value) == nil) then
    return next(value) and value or vim.empty_dict()
  end
  local at = not ok and tonumber(tostring(value):match("at character (%d+)")) or 1
  local row = #vim.split(text:sub(1, math.floor(at) - 1), "\n") - 1
  local why = ok and "expected a JSON object" or "cannot parse JSON: " .. tostring(value):gsub("^.-: ", "")
  vim.diagnostic.set(problems, form.buffer, { problem(row, why) })
end

---Shows the errors of the sidecar at their fields.
---@param form mcp_sidecar.Form
---@param err mcp_sidecar.Error
local function show_errors(form, err)
  local found, list = places(form), {}
  for _, each in ipairs(err.data and err.data.detail or {}) do
    local name = (each.path:match("^/([^/]+)") or ""):gsub("~1", "/"):gsub("~0", "~")
    table.insert(list, problem(found[name] or 0, each.message))
  end
  vim.diagnostic.set(problems, form.buffer, #list > 0 and list or { problem(0, err.message) })
end

---Sends the form. The user has just read it, so no second question is needed.
---@param form mcp_sidecar.Form
local function submit(form)
  if form.cancel then return client.info("still running; press <C-c> to cancel") end
  vim.diagnostic.reset(problems, form.buffer)
  local values = read(form)
  if not values then return end
  vim.bo[form.buffer].modified = false
  history[form.name] = lines_of(form)
  header(form, "running…")
  form.cancel = form.send(values, {
    progress = function(text) header(form, text) end,
    done = function(err)
      form.cancel = nil
      header(form)
      local invalid = err and err.data and err.data.kind == "invalid-arguments"
      if err and invalid and forms[form.buffer] then show_errors(form, err) end
      return invalid
    end,
  })
end

---Suggestions for a field: the values of its schema, else the selection and the file that the form was opened from.
---@param field mcp_sidecar.Schema
---@param origin mcp_sidecar.Origin
---@return mcp_sidecar.Value[]
local function offers(field, origin)
  local list = schemas.values(field)
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

---Sets a field and moves the cursor there. A value is added to a list.
---@param form mcp_sidecar.Form
---@param name string
---@param value any
local function set(form, name, value)
  local values = read(form)
  if not values then return end
  local several = schemas.field(form.schema, name).type == "array" and type(value) ~= "table"
  local before = type(values[name]) == "table" and values[name] or {}
  if several and vim.tbl_contains(before, value) then return end
  values[name] = several and vim.list_extend(vim.list_slice(before), { value }) or value
  vim.api.nvim_buf_set_lines(form.buffer, 0, -1, false, schemas.lines(form.schema, values))
  annotate(form)
  vim.api.nvim_win_set_cursor(0, { (places(form)[name] or 0) + 1, 0 })
end

---Sets the field under the cursor to one of the suggestions.
---@param form mcp_sidecar.Form
local function choose(form)
  local row, name, above = vim.api.nvim_win_get_cursor(0)[1] - 1, nil, -1
  for each, place in pairs(places(form)) do
    if place <= row and place > above then
      name, above = each, place
    end
  end
  local list = name and offers(schemas.field(form.schema, name), form.origin) or {}
  if not name or #list == 0 then return client.info("no suggestions for this field") end
  local opts = { prompt = name .. ": ", kind = "mcp_value", format = function(item) return tostring(item.title) end }
  windows.choose(list, opts, function(item) set(form, name, item.value) end)
end

---@param form mcp_sidecar.Form
local function add(form)
  local missing = M.missing(form)
  if #missing == 0 then return client.info("the form already has every field") end
  local opts = { prompt = "Add a field: ", kind = "mcp_field" }
  windows.choose(missing, opts, function(name) set(form, name, schemas.example(schemas.field(form.schema, name))) end)
end

---@param form mcp_sidecar.Form
local function cancel(form)
  if form.cancel then return form.cancel() end
  vim.cmd.stopinsert()
end

---@param form mcp_sidecar.Form
local function recall(form)
  local lines = history[form.name]
  if lines then vim.api.nvim_buf_set_lines(form.buffer, 0, -1, false, lines) end
end

---Sets up the keys and the autocommands of a form.
---@param buffer integer
---@param verb string
local function equip(buffer, verb)
  ---@param run fun(form: mcp_sidecar.Form)
  local function here(run)
    return function()
      local form = forms[buffer]
      if form then run(form) end
    end
  end
  local function on(events, run) vim.api.nvim_create_autocmd(events, { buffer = buffer, callback = run }) end
  on("BufWriteCmd", here(submit))
  on({ "TextChanged", "TextChangedI" }, here(annotate))
  on("BufWipeout", function() forms[buffer] = nil end)
  windows.keys(buffer, verb, {
    { "<CR>", here(submit), ("(or `:w`) %s"):format(verb) },
    { "<Tab>", here(choose), "choose a value: from the schema, the selection, the file" },
    { "+", here(add), "add another field" },
    { "<C-c>", here(cancel), "cancel the call", mode = { "n", "i" } },
    { "K", here(function(form) form.about() end), "details" },
    { "H", here(recall), "restore what was sent last" },
  })
end

---@param spec mcp_sidecar.FormSpec
---@param values table<string, any> at the start
function M.open(spec, values)
  local buffer = windows.buffer(spec.name, "json")
  if not forms[buffer] then equip(buffer, spec.verb) end
  local form = vim.tbl_extend("error", spec, { buffer = buffer }) --[[@as mcp_sidecar.Form]]
  forms[buffer] = form
  vim.bo[buffer].buftype = "acwrite"
  vim.bo[buffer].omnifunc = "v:lua.require'mcp_sidecar.ui.complete'.omni"
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, schemas.lines(form.schema, values))
  vim.bo[buffer].modified = false
  local window = windows.show(buffer, { wrap = true })
  vim.wo[window].conceallevel = 0
  annotate(form)
  header(form)
  -- The cursor is on the first value, inside its quotes.
  local lines = lines_of(form)
  local before = (lines[2] or ""):match('^%s*"[^"]+": "?') or ""
  vim.api.nvim_win_set_cursor(window, { math.min(2, #lines), #before })
end

return M
