--- Values that an answer needs: what a server asks for, or changed arguments of a call. A single value is asked on the
--- command line, everything else in a form. Closing either one is not an answer.

local client = require("mcp_sidecar.client")
local fields = require("mcp_sidecar.ui.fields")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

-- A key that was meant for another window sends nothing.
local DEAD_MS = 400

local nested = { object = true, list = true, choices = true, json = true }

---@class mcp_sidecar.AnswerForm
---@field verb string what sending the form does
---@field open fun(): mcp_sidecar.Covering? makes room for the form; nil when the question no longer waits
---@field accept fun(values: table, done?: fun(err?: mcp_sidecar.Error)) sends the answer

---Sends a command to the sidecar that asks.
---@param approval mcp_sidecar.Question
---@param done fun(err?: mcp_sidecar.Error, result?: any)
local function request(approval, command, params, done)
  client.command(command, params, done, { client = vim.lsp.get_client_by_id(approval.client_id) })
end

---@param approval mcp_sidecar.Question
---@param opts mcp_sidecar.AnswerForm
---@param form { fields: mcp_sidecar.Field[], note: string, of: table } of: what mcp.form.check checks
---@param values table<string, any>
local function open_form(approval, opts, form, values)
  local origin = (require("mcp_sidecar.ui.call").origin())
  local covering = opts.open()
  if not covering then return end
  local name = "mcp-answer://" .. approval.id
  -- Leave room for the keys.
  local title = style.fit(approval.title, vim.o.columns - 28)
  local room = vim.o.columns - 28 - vim.api.nvim_strwidth(title)
  local buffer = require("mcp_sidecar.ui.form").open({
    name = name,
    fields = form.fields,
    title = { { " " .. title, "McpTitle" } },
    note = room > 20 and style.fit(form.note, room) or "",
    verb = opts.verb,
    origin = origin,
    ready = vim.uv.now() + DEAD_MS,
    about = function() windows.peek({ approval.detail }, approval.title) end,
    check = function(given, done)
      request(approval, "mcp.form.check", vim.tbl_extend("error", { values = given }, form.of), done)
    end,
    send = function(accepted, report)
      opts.accept(accepted, function(err)
        if not report.done(err) then client.error(err) end
        local window = windows.window_of(name)
        if not err and window then vim.api.nvim_win_close(window, true) end
      end)
    end,
  }, values)
  windows.on_close(buffer, covering)
end

---Asks for a single value. A secret is never shown and never in a buffer.
---@param field mcp_sidecar.Field
---@param done fun(value: any)
local function ask(field, default, done)
  local help = field.help and (" (%s)"):format(field.help) or ""
  local label = (field.title .. help):gsub("%c+", " ") .. ": "
  local choices = fields.choices(field)
  if #choices > 0 then
    local opts = { prompt = label, kind = "mcp_field", format = function(choice) return choice.title end }
    return windows.choose(choices, opts, function(choice) done(choice.value) end)
  end
  local function take(text)
    if text and (text ~= "" or not field.required) then done(text) end
  end
  if field.kind ~= "secret" then return vim.ui.input({ prompt = label, default = default }, take) end
  local ok, text = pcall(vim.fn.inputsecret, label)
  take(ok and text or nil)
end

---Lets the user fill in what a server asks for.
---@param approval mcp_sidecar.Question
---@param opts mcp_sidecar.AnswerForm
function M.fill_in(approval, opts)
  local form = approval.form or { fields = {} }
  local field, of = form.fields[1], { approval = approval.id }
  if not field then return opts.accept(vim.empty_dict()) end
  if #form.fields > 1 or nested[field.kind] then
    local spec = { fields = form.fields, note = approval.detail, of = of }
    return open_form(approval, opts, spec, fields.initial(form, {}))
  end
  local function once(default)
    ask(field, default, function(value)
      local params = vim.tbl_extend("error", { values = { [field.name] = value } }, of)
      request(approval, "mcp.form.check", params, function(err, checked)
        if not checked then return client.error(err) end
        local wrong = checked.problems[1]
        if not wrong then return opts.accept(checked.arguments) end
        -- The message may quote the value.
        local secret = field.kind == "secret"
        client.warn(secret and "expected " .. field.rule or wrong.message)
        once(secret and "" or tostring(value))
      end)
    end)
  end
  once(field.default ~= nil and tostring(field.default) or "")
end

---Lets the user change the arguments of a call.
---@param approval mcp_sidecar.Question
---@param opts mcp_sidecar.AnswerForm
function M.edit(approval, opts)
  local given = approval.arguments or vim.empty_dict()
  local of = { tool = require("mcp_sidecar").tool_name(approval.server .. "/" .. approval.tool) }
  request(approval, "mcp.tool.form", of, function(err, form)
    if not form then return client.error(err) end
    local spec = { fields = form.fields, note = "these arguments, this time only", of = of }
    open_form(approval, opts, spec, given)
  end)
end

return M
