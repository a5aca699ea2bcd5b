--- `:checkhealth mcp_sidecar`

local M = {}

local health = vim.health

local function neovim()
  if vim.fn.has("nvim-0.10") == 0 then
    return health.error("Neovim is too old", { "Neovim 0.10 is required, and 0.11 or later is recommended" })
  end
  health.ok("Neovim is new enough")
end

---Which binary runs, and why the others do not.
local function binary()
  local binaries, config = require("mcp_sidecar.binary"), require("mcp_sidecar.config")
  for _, problem in ipairs(config.problems()) do
    health.warn(problem, { ":help mcp-sidecar-options" })
  end
  local given = config.get().cmd
  local cmd, problem = binaries.cmd()
  for _, found in ipairs(given and {} or binaries.candidates()) do
    local about = ("%s, %s"):format(found.program, found.place)
    if found.problem then
      health.info(("not used: %s: %s"):format(about, found.problem))
    else
      health.ok(("runs mcp-sidecar %s: %s"):format(found.version, about))
    end
  end
  if not cmd then
    health.error(problem or "no binary", { "`:Mcp install` downloads version " .. binaries.version })
    return false
  end
  if not given then return true end
  local done = vim.system({ cmd[1], "--version" }, { text = true }):wait(5000)
  if done.code ~= 0 then
    health.error(("`%s --version` failed"):format(cmd[1]), { vim.trim(done.stderr or "") })
    return false
  end
  health.ok(("runs %s: %s, set in vim.g.mcp_sidecar.cmd"):format(vim.trim(done.stdout or ""), cmd[1]))
  return true
end

---The version of the sidecar, its servers, and its own checks. Waits for the response.
local function workspace()
  local client = require("mcp_sidecar.client")
  local over, failure, report = false, nil, nil
  client.command("mcp.doctor", nil, function(err, result)
    over, failure, report = true, err, result
  end)
  vim.wait(5000, function() return over end, 10)
  local running = client.current()
  if not (report and running) then
    local why = failure and failure.message or "no response within 5 s"
    return health.error("the sidecar does not respond: " .. why, { "`:Mcp log` shows its log" })
  end
  local own = ((running.server_capabilities or {}).experimental or {}).mcpSidecar or {}
  if own.protocol == 1 then
    health.ok(("sidecar %s is running: protocol 1, workspace %s"):format(own.version, client.workspace().root or "?"))
  else
    health.warn(
      "this plugin needs protocol 1, but the sidecar has protocol " .. tostring(own.protocol),
      { "update both" }
    )
  end
  for _, server in ipairs(require("mcp_sidecar").servers()) do
    local say = ({ bad = health.warn, attention = health.info })[server.summary.tone] or health.ok
    local remedy = server.remedy and (" (%s)"):format(client.typed(server.remedy)) or ""
    say(("%s: %s%s"):format(server.name, server.summary.text, remedy))
  end
  for _, check in ipairs(report.checks) do
    local text = ("%s: %s"):format(check.name, check.message)
    if check.ok then
      health.ok(text)
    else
      health.warn(text, { check.fix })
    end
  end
end

function M.check()
  health.start("mcp-sidecar: Neovim")
  neovim()
  health.start("mcp-sidecar: binary")
  if binary() then
    health.start("mcp-sidecar: workspace")
    workspace()
  end
end

return M
