--- `:checkhealth mcp_sidecar`: what is there, what is missing, and what to do about it.

local M = {}

local health = vim.health

local function neovim()
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  elseif vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim 0.10; from 0.11 on the client can be changed with vim.lsp.config()")
  else
    health.error("Neovim is too old", { "0.10 is the oldest that works, 0.11 or later is better" })
  end
end

---@return boolean
local function binary()
  local config = require("mcp_sidecar.config")
  for _, complaint in ipairs(config.complaints()) do
    health.warn(complaint, { ":help mcp-sidecar-options" })
  end
  local cmd, problem = config.cmd()
  if not cmd then
    health.error(problem or "no binary")
    return false
  end
  local done = vim.system({ cmd[1], "--version" }, { text = true }):wait(5000)
  if done.code ~= 0 then
    health.error(("`%s --version` failed"):format(cmd[1]), { vim.trim(done.stderr or "") })
    return false
  end
  health.ok(("%s (%s)"):format(vim.trim(done.stdout), cmd[1]))
  return true
end

---Asks the sidecar and waits: a report is read when it is complete.
local function ask(command)
  local client = require("mcp_sidecar.client")
  local over, failure, answer = false, nil, nil
  client.command(command, nil, function(err, result)
    over, failure, answer = true, err, result
  end)
  vim.wait(5000, function() return over end, 10)
  return answer, failure and failure.message or (not over and "no answer within 5 s") or nil
end

local function workspace()
  local client = require("mcp_sidecar.client")
  local files, problem = ask("mcp.config")
  if not files then return health.error("the sidecar does not answer: " .. problem, { "`:Mcp log` shows its log" }) end
  local running = client.current()
  local own = ((running.server_capabilities.experimental or {}).mcpSidecar or {})
  if own.protocol == 1 then
    health.ok(
      ("sidecar %s runs, protocol %d, workspace %s"):format(own.version, own.protocol, client.picture().root or "?")
    )
  else
    health.warn("this plugin speaks protocol 1, the sidecar " .. tostring(own.protocol), { "update both" })
  end
  for _, file in ipairs(files.files) do
    if file.exists and file.valid then
      health.ok(
        ("%s (%s): %s"):format(
          file.path,
          file.scope,
          #file.servers > 0 and table.concat(file.servers, ", ") or "no servers"
        )
      )
    elseif file.exists then
      health.warn(("%s (%s) has mistakes"):format(file.path, file.scope), { "open it: each is marked at its place" })
    end
  end
  for _, server in ipairs(require("mcp_sidecar").servers()) do
    if server.status == "failed" then
      health.warn(("%s: %s"):format(server.name, server.error or "failed"), { ":Mcp logs " .. server.name })
    elseif server.needsTrust then
      health.info(("%s waits until you trust it: `:Mcp trust %s`"):format(server.name, server.name))
    else
      health.ok(("%s: %s, %d tools"):format(server.name, server.status, server.toolCount))
    end
  end
  local report = ask("mcp.doctor")
  for _, check in ipairs(report and report.checks or {}) do
    if check.ok then
      health.ok(("%s: %s"):format(check.name, check.message))
    else
      health.warn(("%s: %s"):format(check.name, check.message), check.fix and { check.fix } or nil)
    end
  end
end

function M.check()
  health.start("mcp-sidecar: Neovim")
  neovim()
  if pcall(vim.treesitter.language.inspect, "markdown") then
    health.ok("results in markdown are coloured by tree-sitter")
  else
    health.info("no markdown parser: results in markdown are shown plain")
  end
  health.start("mcp-sidecar: binary")
  if binary() then
    health.start("mcp-sidecar: workspace")
    workspace()
  end
end

return M
