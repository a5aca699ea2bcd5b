--- A JSON buffer made from fields: the arguments of a tool, or the answer to a question of a server.
--- The sidecar checks it while the user types; what is wrong is shown as diagnostics.

local client = require("mcp_sidecar.client")
local edit = require("mcp_sidecar.ui.form_edit")
local fields = require("mcp_sidecar.ui.fields")
local json = require("mcp_sidecar.json")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

-- A check starts when the user has typed nothing for this time.
local CHECK_MS = 150
-- Lines that are not highlighted, in bytes.
local LONG_LINE = 20000

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_form")
local problems = vim.api.nvim_create_namespace("mcp_sidecar_form_problems")
-- Errors are always shown next to their field, whatever the user has configured; before 0.11 at the end of the line.
local in_lines = vim.fn.has("nvim-0.11") == 1
vim.diagnostic.config({
  virtual_lines = in_lines,
  virtual_text = not in_lines,
  signs = false,
  update_in_insert = true,
}, problems)

---@class mcp_sidecar.FormSpec
---@field name string of the buffer
---@field fields mcp_sidecar.Field[]
---@field title mcp_sidecar.Chunk[]
---@field note string shown after the title
---@field verb string what <CR> does
---@field origin mcp_sidecar.Origin
---@field check fun(values: table, done: fun(err?: mcp_sidecar.Error, checked?: mcp_sidecar.Entered))
---@field send fun(values: table, report: mcp_sidecar.Report): fun()? returns a function that cancels it
---@field about fun() shows the details
---@field ready? integer when keys that send it start to work

---@class mcp_sidecar.Entered what was entered, as the sidecar read it
---@field arguments table<string, any>
---@field problems mcp_sidecar.Violation[]
---@field warnings? mcp_sidecar.Violation[]

---@class mcp_sidecar.OpenForm: mcp_sidecar.FormSpec
---@field buffer integer
---@field root mcp_sidecar.Field the fields as one object
---@field tick integer the version of the text that was checked last, or was not written by the user
---@field stop? fun() cancels what is running
---@field warned? mcp_sidecar.Violation[] warnings that the user has seen
local Form = {}
Form.__index = Form

---@class mcp_sidecar.Report how a form learns about what it sent
---@field progress fun(text: string)
---@field done fun(err?: mcp_sidecar.Error): boolean? true when the form shows the error itself

---@type table<integer, mcp_sidecar.OpenForm?> by buffer
local forms = {}
---@type table<string, string[]?> the text that was last sent from each form
local history = {}

---@param buffer integer
---@return mcp_sidecar.OpenForm?
function M.of(buffer) return forms[buffer] end

function Form:is_open() return forms[self.buffer] == self end

function Form:lines() return vim.api.nvim_buf_get_lines(self.buffer, 0, -1, false) end

---@return mcp_sidecar.Place[]
function Form:places() return fields.places(self.root, self:lines()) end

---The innermost value at the cursor.
---@return mcp_sidecar.Place?
function Form:at_cursor()
  local cursor = vim.api.nvim_win_get_cursor(0)
  local indent = #vim.api.nvim_get_current_line():match("^%s*")
  return fields.at(self:places(), cursor[1] - 1, math.max(cursor[2], indent))
end

---Shows titles, help and rules of the fields as virtual text.
function Form:annotate()
  vim.api.nvim_buf_clear_namespace(self.buffer, namespace, 0, -1)
  local function mark(row, opts) vim.api.nvim_buf_set_extmark(self.buffer, namespace, row, 0, opts) end
  local window, texts = vim.fn.bufwinid(self.buffer), self:lines()
  local width = window ~= -1 and vim.api.nvim_win_get_width(window) or vim.o.columns
  for _, place in ipairs(self:places()) do
    local field, indent, adds = place.field, (" "):rep(place.column), fields.addable(place)
    local hint = adds and { { "  + adds ", "McpMuted" }, { adds, "McpKey" } } or {}
    local is_open = place.last_row > place.row
    if field and place.name then
      local words = vim.list_extend({ field.title ~= field.name and field.title or nil }, { field.help })
      local lines = #words > 0 and style.wrap(table.concat(words, ": "), width - place.column - 4) or {}
      local above = vim.tbl_map(function(line) return { { indent .. line, "McpMuted" } } end, lines)
      local rules = vim.list_extend({
        { field.required and "required" or "optional", field.required and "McpWarn" or "McpMuted" },
        { ", " .. fields.rule(field), "McpMuted" },
      }, is_open and {} or hint)
      -- Beside a long value, the rules would be cut.
      local fits = vim.api.nvim_strwidth(texts[place.row + 1] .. style.text(rules)) + 3 <= width
      if not fits then table.insert(above, vim.list_extend({ { indent } }, rules)) end
      mark(place.row, {
        virt_lines = above,
        virt_lines_above = true,
        -- After an error, which is at the end of the line before 0.11.
        priority = 5000,
        virt_text = fits and vim.list_extend({ { "  " } }, rules) or nil,
      })
    end
    if adds and is_open then
      local above = vim.list_extend({ { indent } }, hint)
      mark(place.last_row, { virt_lines = { above }, virt_lines_above = true })
    end
  end
end

---@param state? string what is running
function Form:header(state)
  local window = windows.window_of(self.name)
  if not window then return end
  local note = { { "  " .. (state or self.note), "McpMuted" } }
  local keys = { { "<CR>", self.verb }, { "<Tab>", "choose" }, { "+", "add" }, { "ge", "text" }, { "?", "help" } }
  vim.wo[window].winbar = windows.winbar(self.title, state and { { "<C-c>", "cancel" } } or keys, note)
end

---@param row integer
---@param from integer
---@param to integer exclusive
---@param message string
---@return vim.Diagnostic.Set
local function problem(row, from, to, message)
  return { lnum = row, col = from, end_lnum = row, end_col = to, message = message, source = "mcp-sidecar" }
end

---The values, or nil and where the text is not JSON.
---@return table<string, any>? values, vim.Diagnostic.Set? problem
function Form:decode()
  local text = table.concat(self:lines(), "\n")
  local ok, value = pcall(vim.json.decode, text)
  if ok and type(value) == "table" and (not vim.islist(value) or next(value) == nil) then
    return next(value) and value or vim.empty_dict()
  end
  local at = not ok and tonumber(tostring(value):match("at character (%d+)")) or 1
  local before = vim.split(text:sub(1, math.floor(at) - 1), "\n")
  local column = #before[#before]
  local why = ok and "expected a JSON object" or "cannot parse JSON: " .. tostring(value):gsub("^.-: ", "")
  return nil, problem(#before - 1, column, column + 1, why)
end

---The values, or nil with a diagnostic.
---@return table<string, any>?
function Form:read()
  local values, wrong = self:decode()
  if wrong then
    vim.diagnostic.set(problems, self.buffer, { wrong })
    self:to_problem()
  end
  return values
end

---Shows what is wrong at the fields, and what the user should know before it is sent.
---@param found mcp_sidecar.Violation[]
---@param warnings? mcp_sidecar.Violation[]
function Form:show_problems(found, warnings)
  local places = self:places()
  local function mark(each)
    local place = fields.find(places, each.path) or places[1]
    if not place then return problem(0, 0, 1, each.message) end
    -- Of an object or a list, only its first line is marked: most of what is in it is right.
    local row = place.value_row
    local to = place.last_row == row and place.last_column + 1 or #self:lines()[row + 1]
    return problem(row, place.value_column, to, each.message)
  end
  local marks = vim.tbl_map(mark, found)
  for _, each in ipairs(warnings or {}) do
    table.insert(marks, vim.tbl_extend("error", mark(each), { severity = vim.diagnostic.severity.WARN }))
  end
  vim.diagnostic.set(problems, self.buffer, marks)
end

---Moves the cursor to the first mistake, which may be out of sight.
function Form:to_problem()
  local window, first = windows.window_of(self.name), vim.diagnostic.get(self.buffer, { namespace = problems })[1]
  if window and first then vim.api.nvim_win_set_cursor(window, { first.lnum + 1, first.col }) end
end

---Checks the form when the user stops typing. Only the check of the latest text counts.
function Form:changed()
  local tick = vim.api.nvim_buf_get_changedtick(self.buffer)
  if tick == self.tick then return end
  self.tick = tick
  self:annotate()
  local function is_latest() return forms[self.buffer] == self and self.tick == tick end
  vim.defer_fn(function()
    if not is_latest() then return end
    local values = self:decode()
    if not values then return vim.diagnostic.reset(problems, self.buffer) end
    self.check(values, function(_, checked)
      if checked and is_latest() then self:show_problems(checked.problems, checked.warnings) end
    end)
  end, CHECK_MS)
end

---Sends the form if nothing is wrong. The user has just read it, so no second question is needed.
function Form:submit()
  if vim.uv.now() < (self.ready or 0) then return end
  if self.stop then return client.info("still running; press <C-c> to cancel") end
  vim.diagnostic.reset(problems, self.buffer)
  local values = self:read()
  if not values then return end
  self.stop = function() end
  self.check(values, function(err, checked)
    self.stop = nil
    if forms[self.buffer] ~= self then return end
    if not checked then return client.error(err) end
    local warnings = checked.warnings or {}
    local is_new = #warnings > 0 and not vim.deep_equal(warnings, self.warned)
    if #checked.problems > 0 or is_new then
      self:show_problems(checked.problems, warnings)
      self.warned = warnings
      if #checked.problems == 0 then
        client.info(("see the warning; press <CR> again to %s anyway"):format(self.verb))
      end
      return self:to_problem()
    end
    vim.bo[self.buffer].modified = false
    history[self.name] = self:lines()
    self:header("running…")
    self.stop = self.send(checked.arguments, {
      progress = function(text) self:header(text) end,
      done = function(failed)
        self.stop = nil
        self:header()
        local wrong = failed and failed.data and failed.data.detail
        if wrong and forms[self.buffer] then self:show_problems(wrong) end
        return wrong ~= nil
      end,
    })
  end)
end

---@param values table<string, any>
function Form:write(values)
  local text = json.pretty(values, "", self.root)
  vim.api.nvim_buf_set_lines(self.buffer, 0, -1, false, vim.split(text == "{}" and "{\n}" or text, "\n"))
end

---Sets up the keys and the autocommands.
function Form:equip()
  local group = vim.api.nvim_create_augroup("mcp_sidecar_form_" .. self.buffer, {})
  local function on(events, run)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = self.buffer, callback = function() run() end })
  end
  local function submit() self:submit() end
  local function cancel() return (self.stop or vim.cmd.stopinsert)() end
  local function recall()
    local lines = history[self.name]
    if lines then vim.api.nvim_buf_set_lines(self.buffer, 0, -1, false, lines) end
  end
  on("BufWriteCmd", submit)
  on({ "TextChanged", "TextChangedI" }, function() self:changed() end)
  on("BufWipeout", function() forms[self.buffer] = nil end)
  windows.keys(self.buffer, self.verb, {
    { "<CR>", submit, ("(or `:w`) %s"):format(self.verb) },
    { "<Tab>", function() edit.choose(self) end, "choose a value: a choice, the selection, the file" },
    { "+", function() edit.add(self) end, "add another field or item" },
    { "-", function() edit.remove(self) end, "remove the field or item" },
    { "ge", function() edit.edit_text(self) end, "edit the text in its own window" },
    { "<C-c>", cancel, "cancel the call", mode = { "n", "i" } },
    { "K", self.about, "details" },
    { "H", recall, "restore what was sent last" },
  })
end

---@param spec mcp_sidecar.FormSpec
---@param values table<string, any> at the start
---@return integer buffer
function M.open(spec, values)
  local buffer = windows.buffer(spec.name, "json")
  local root = { name = "", title = "", required = true, kind = "object", rule = "", fields = spec.fields }
  local form = setmetatable(vim.tbl_extend("error", spec, { buffer = buffer, root = root, tick = 0 }), Form)
  forms[buffer] = form
  form:equip()
  vim.bo[buffer].buftype = "acwrite"
  vim.bo[buffer].omnifunc = "v:lua.require'mcp_sidecar.ui.complete'.omni"
  vim.bo[buffer].modifiable = true
  form:write(values)
  -- The patterns that highlight JSON fail on very long lines, with an error at each redraw.
  if vim.iter(form:lines()):any(function(line) return #line > LONG_LINE end) then vim.bo[buffer].syntax = "" end
  vim.bo[buffer].modified = false
  vim.diagnostic.reset(problems, buffer)
  form.tick = vim.api.nvim_buf_get_changedtick(buffer)
  -- Each field has a line of help, and there is a winbar.
  local rows = #form:lines() + #form:places() + 2
  local instead = windows.is_narrow() and "mcp-result://" or nil
  local window = windows.show(buffer, { wrap = true, instead = instead, rows = rows })
  vim.wo[window].conceallevel = 0
  form:annotate()
  form:header()
  -- The cursor is on the first value, inside its quotes.
  local lines = form:lines()
  local before = (lines[2] or ""):match('^%s*"[^"]+": "?') or ""
  vim.api.nvim_win_set_cursor(window, { math.min(2, #lines), #before })
  return buffer
end

return M
