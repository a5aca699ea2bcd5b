--- Answers to questions of a server: a single text or choice on the command line, everything else in a form.
--- Closing either one is not an answer.

local client = require("mcp_sidecar.client")
local schema = require("mcp_sidecar.ui.schema")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---Asks for a single field. A secret is never shown and never in a buffer.
---@param field mcp_sidecar.Schema
---@param label string
---@param secret? boolean
---@param done fun(value?: any) nil when it was left empty
local function ask(field, label, secret, done)
  local values = schema.values(field)
  if values then
    local opts = { prompt = label, kind = "mcp_field", format = function(one) return tostring(one.title) end }
    return windows.choose(values, opts, function(one) done(one.value) end)
  end
  local function take(text)
    if text then done(text ~= "" and text or nil) end
  end
  if secret then
    local ok, text = pcall(vim.fn.inputsecret, label)
    return take(ok and text or nil)
  end
  vim.ui.input({ prompt = label, default = type(field.default) == "string" and field.default or "" }, take)
end

---@param approval mcp_sidecar.Approval
---@param accept fun(content: table, done?: fun(err?: mcp_sidecar.Error)) sends the answer
---@param before_form fun() runs before the form opens
function M.open(approval, accept, before_form)
  local asked = approval.schema or {}
  local names, required = schema.order(asked)
  local field = #names == 1 and schema.field(asked, names[1]) or {}
  if #names == 0 then return accept(vim.empty_dict()) end
  if field.type == "string" or field.type == "boolean" or field.enum then
    local words = type(field.description) == "string" and (" (%s)"):format(field.description) or ""
    local label = (tostring(field.title or names[1]) .. words):gsub("%c+", " ")
    return ask(field, label .. ": ", asked.password, function(value)
      if value ~= nil then return accept({ [names[1]] = value }) end
      if not required[names[1]] then accept(vim.empty_dict()) end
    end)
  end
  before_form()
  local name = "mcp-answer://" .. approval.id
  require("mcp_sidecar.ui.form").open({
    name = name,
    schema = asked,
    title = { { " " .. approval.title, "McpTitle" } },
    -- Leave room for the keys.
    note = style.fit(approval.detail, math.max(20, vim.o.columns - 50)),
    verb = "send",
    origin = (require("mcp_sidecar.ui.call").origin()),
    about = function() windows.peek({ approval.detail }, approval.title) end,
    send = function(content, report)
      accept(content, function(err)
        if not report.done(err) then client.error(err) end
        local window = windows.window_of(name)
        if not err and window then vim.api.nvim_win_close(window, true) end
      end)
    end,
  }, {})
end

return M
