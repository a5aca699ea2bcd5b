--- The form of a server, new or in a file. The sidecar makes it, checks it, and says which command takes what was entered.

local client = require("mcp_sidecar.client")
local fields = require("mcp_sidecar.ui.fields")
local style = require("mcp_sidecar.ui.style")
local user_actions = require("mcp_sidecar.user_actions")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@param params { template?: string, commandLine?: string, registry?: mcp_sidecar.RegistryServer, server?: string, values?: table<string, any> }
---values: other first values than those of the sidecar
function M.open(params)
  local of, values = vim.deepcopy(params), params.values or {}
  of.values = nil
  client.fetch("mcp.server.form", of, function(form)
    local name = "mcp-server://" .. (params.server or params.template or form.values.name or "new")
    require("mcp_sidecar.ui.form").open({
      name = name,
      fields = form.fields,
      title = { { " " .. style.fit(form.title, math.max(20, vim.o.columns - 50)), "McpTitle" } },
      note = "",
      verb = form.verb:lower(),
      origin = (require("mcp_sidecar.ui.call").origin()),
      about = function() windows.peek({ form.title }, form.verb) end,
      check = function(entered, done) client.command("mcp.form.check", { server = of, values = entered }, done) end,
      send = function(accepted, report)
        -- The question whether to trust it comes next.
        user_actions.add({ server = accepted.server })
        client.command(form.command, accepted, function(err, result)
          if not report.done(err) then client.error(err) end
          if err then return end
          local window = windows.window_of(name)
          if window then vim.api.nvim_win_close(window, true) end
          local file = result.server.file and vim.fn.fnamemodify(result.server.file, ":~:.") or result.server.scope
          client.info(("saved `%s` in %s"):format(result.server.name, file))
        end)
      end,
    }, fields.initial(form, vim.tbl_extend("force", form.values, values)))
  end)
end

return M
