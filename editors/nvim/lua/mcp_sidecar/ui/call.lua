--- Calls tools: picks one, sends the call, shows the result. The form for the arguments is in `form`.

local client = require("mcp_sidecar.client")
local fields = require("mcp_sidecar.ui.fields")
local style = require("mcp_sidecar.ui.style")
local user_actions = require("mcp_sidecar.user_actions")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@class mcp_sidecar.Origin where a call was started, and where its result may be inserted
---@field buffer integer
---@field window integer
---@field range? { [1]: integer, [2]: integer, [3]: integer, [4]: integer } first line and column, last line and
---column (exclusive), all from 0
---@field exact? boolean the range is a selection within lines, not whole lines

---@type { tool: mcp_sidecar.ToolInfo, arguments: table }?
local last_call

---The current buffer and window; with a range, or the exact selection if it has the same lines.
---@param first? integer
---@param last? integer
---@return mcp_sidecar.Origin origin, string? text
function M.origin(first, last)
  local origin = { buffer = vim.api.nvim_get_current_buf(), window = vim.api.nvim_get_current_win() }
  if not (first and last) then return origin end
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  local lines = vim.api.nvim_buf_get_lines(0, first - 1, last, false)
  origin.range = { first - 1, 0, last - 1, #lines[#lines] }
  if vim.fn.visualmode() == "v" and from[2] == first and to[2] == last then
    local width = #vim.fn.matchstr(lines[#lines], "\\%" .. to[3] .. "c.")
    origin.exact = true
    origin.range = { first - 1, from[3] - 1, last - 1, math.min(#lines[#lines], to[3] - 1 + math.max(1, width)) }
  end
  return origin, M.text(origin)
end

---The selected text of an origin.
---@param origin mcp_sidecar.Origin
function M.text(origin)
  if not origin.range or not vim.api.nvim_buf_is_valid(origin.buffer) then return end
  local range = origin.range
  local ok, lines = pcall(vim.api.nvim_buf_get_text, origin.buffer, range[1], range[2], range[3], range[4], {})
  return ok and table.concat(lines, "\n") or nil
end

---Sends a call and shows its result.
---@param tool mcp_sidecar.ToolInfo
---@param arguments table
---@param origin mcp_sidecar.Origin
---@param opts? { decision?: mcp_sidecar.Decision, moment?: mcp_sidecar.Moment, progress?: fun(text: string), done?: fun(err?: mcp_sidecar.Error): boolean? }
---@return fun() cancel
function M.send(tool, arguments, origin, opts)
  opts = opts or {}
  last_call = { tool = tool, arguments = arguments }
  local action = { server = tool.server, tool = tool.tool, arguments = arguments }
  local finish = user_actions.add(action, opts.moment)
  return client.command("mcp.tool.call", {
    tool = tool.name,
    arguments = next(arguments) and arguments or nil,
    decision = opts.decision,
  }, function(err, result)
    finish()
    local handled = opts.done and opts.done(err)
    if err and err.code == -32800 then
      client.info(("`%s` was cancelled"):format(tool.tool))
    elseif err and not handled then
      client.error(err)
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

---Shows the description and the schema of a tool.
---@param tool mcp_sidecar.ToolInfo
function M.describe(tool)
  local lines = { tool.description, "", ("level `%s` from %s"):format(tool.level, tool.source), "" }
  windows.peek(windows.add_json(lines, tool.inputSchema), tool.name)
end

---@param tool mcp_sidecar.ToolInfo
---@param form mcp_sidecar.Form
---@param origin mcp_sidecar.Origin
local function fill_in(tool, form, arguments, origin)
  local effect, group = style.effect(tool.annotations)
  require("mcp_sidecar.ui.form").open({
    name = ("mcp-call://%s/%s"):format(tool.server, tool.tool),
    fields = form.fields,
    title = {
      { " " .. tool.server, "McpServer" },
      { " › ", "McpMuted" },
      { tool.tool, "McpTool" },
      { "  " .. effect, group },
    },
    note = tool.level,
    verb = "call",
    origin = origin,
    about = function() M.describe(tool) end,
    check = function(values, done) client.command("mcp.form.check", { tool = tool.name, values = values }, done) end,
    send = function(values, report)
      return M.send(tool, values, origin, vim.tbl_extend("error", { decision = "allow-once" }, report))
    end,
  }, fields.initial(form, arguments))
end

---Opens the form of a tool, or calls a tool without parameters.
---@param name string
---@param opts? { arguments?: table, origin?: mcp_sidecar.Origin, text?: string }
function M.start(name, opts)
  opts = opts or {}
  local origin, moment = opts.origin or M.origin(), user_actions.now()
  name = require("mcp_sidecar").tool_name(name)
  client.fetch("mcp.tool.form", { tool = name }, function(form)
    client.fetch("mcp.tools", { all = true }, function(result)
      local tool = vim.iter(result.tools):find(function(each) return each.name == name end)
      if not tool then return end
      if #form.fields == 0 then
        M.send(tool, vim.empty_dict(), origin, { moment = moment })
        return
      end
      local text = opts.text and fields.with_text(form.fields, opts.text)
      fill_in(tool, form, opts.arguments or text or {}, origin)
    end)
  end)
end

---Lets the user pick a tool.
---@param opts? { origin?: mcp_sidecar.Origin, text?: string, server?: string }
function M.pick(opts)
  opts = vim.tbl_extend("keep", opts or {}, { origin = (M.origin()) })
  client.fetch("mcp.tools", { server = opts.server }, function(result)
    windows.choose(result.tools, {
      prompt = "Call: ",
      kind = "mcp_tool",
      none = "no tools: no server is connected",
      format = function(tool) return tool.server .. "/" .. tool.tool, tool.description end,
    }, function(tool) M.start(tool.name, opts) end)
  end)
end

---Lets the user pick a tool for the lines of a code action.
---@param uri string
---@param range lsp.Range
function M.pick_for(uri, range)
  local origin = { buffer = vim.uri_to_bufnr(uri), window = vim.api.nvim_get_current_win() }
  local last = vim.api.nvim_buf_get_lines(origin.buffer, range["end"].line, range["end"].line + 1, false)[1] or ""
  origin.range = { range.start.line, 0, range["end"].line, #last }
  M.pick({ origin = origin, text = M.text(origin) })
end

---Opens the form of a call again, with its arguments.
---@param result mcp_sidecar.ToolResult
---@param origin mcp_sidecar.Origin
function M.change(result, origin)
  local name = require("mcp_sidecar").tool_name(result.server .. "/" .. result.tool)
  local arguments = last_call and last_call.tool.name == name and last_call.arguments or nil
  M.start(name, { origin = origin, arguments = arguments })
end

---Repeats the last call with the same arguments. The policy is checked again.
function M.again()
  if not last_call then return client.info("no tool has been called yet") end
  M.send(last_call.tool, last_call.arguments, (M.origin()))
end

return M
