-- Signing in to a real authorization server in a Neovim without a browser. MCP_SIDECAR_SKIP_SERVERS skips this.

local Child = require("child")

local backends, node = vim.env.MCP_BACKENDS, vim.env.MCP_BACKEND_NODE
if not (backends and node) then return {} end

local fixtures = Child.repository .. "/tests/fixtures/"

---Runs something with the address of an authorization server.
---@param run fun(base: string)
local function with_issuer(run)
  local printed = ""
  local issuer = vim.system({ node, fixtures .. "issuer.mjs", backends }, {
    env = { MACHINE_SECRET = "unused" },
    stdout = function(_, text) printed = printed .. (text or "") end,
  })
  local ok, problem = xpcall(function()
    assert(vim.wait(20000, function() return printed:find("\n", 1, true) ~= nil end, 20), "the issuer starts")
    run(vim.trim(printed))
  end, debug.traceback)
  issuer:kill("sigkill")
  issuer:wait()
  assert(ok, problem)
end

return {
  {
    "without a browser, the address of the last page is pasted, and it is kept nowhere",
    function(open)
      with_issuer(function(base)
        local user = vim.json.encode({ servers = { far = { url = base .. "/mcp" } } })
        local child = open({ user = user })
        child:lua([[vim.ui.open = function() return nil, "there is no browser" end]])
        child:command("Mcp")
        child:wait("require('mcp_sidecar.client').workspace().servers.far.status == 'needs-auth'")
        child:command("Mcp auth far")
        child:sees(base .. "/auth")
        local page = assert(child:text():match("(http://%S+/auth%S+)"), child:text())
        local browser = vim.system({ "python3", fixtures .. "remote_browser.py", page }):wait()
        local address = vim.trim(browser.stdout or "")
        local code = assert(address:match("code=([^&]+)"), browser.stderr)

        -- A page that is not the last one is refused, and the input stays open.
        child:keys("<CR>")
        child:shows("Address of the last page (far)")
        child:keys("http://127.0.0.1:1/other<CR>")
        child:hears("this is not the address of the last page")
        child:wait("vim.fn.mode() == 'c'", "the input is open again")
        child:request("nvim_paste", address, true, -1)
        assert(not child:screen():find(code, 1, true), "the address is not shown")
        child:keys("<CR>")
        child:hears("Signed in to `far`")
        child:connected("far")
        child:wait("vim.fn.bufwinid('mcp-sign-in://far') == -1", "the window is closed")
        for _, history in ipairs({ "input", "cmd", "expr", "search" }) do
          local entries = child:lua(
            "local all = {} for i = 1, vim.fn.histnr(...) do table.insert(all, vim.fn.histget(..., i)) end return all",
            history
          )
          assert(not table.concat(entries, "\n"):find(code, 1, true), "not in the history: " .. history)
        end
        local kept = vim.system({ "grep", "-rlF", code, child.place }):wait()
        assert(kept.stdout == "", "not in a file: " .. kept.stdout)
      end)
    end,
  },
  {
    "each of two sign-ins at once shows its own page",
    function(open)
      with_issuer(function(far)
        with_issuer(function(near)
          local servers = { far = { url = far .. "/mcp" }, near = { url = near .. "/mcp" } }
          local child = open({ user = vim.json.encode({ servers = servers }) })
          child:lua([[vim.ui.open = function() return nil, "there is no browser" end]])
          child:command("Mcp")
          for name in pairs(servers) do
            child:wait(("require('mcp_sidecar.client').workspace().servers.%s.status == 'needs-auth'"):format(name))
          end
          -- Both are waiting before either has its page, and the second one is the first to get one.
          child:lua([[
            local client = require("mcp_sidecar.client")
            local command, held = client.command, nil
            client.command = function(name, params, done)
              if name == "mcp.server.auth" and params.server == "far" then
                held = function() return command(name, params, done) end
                return function() end
              end
              return command(name, params, done)
            end
            require("mcp_sidecar.ui.sign_in").start("far")
            require("mcp_sidecar.ui.sign_in").start("near")
            _G.release = function() held() end
          ]])
          local lines = "table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('mcp-sign-in://%s'), 0, -1, false), ' ')"
          local shows = function(name, base) return ("(%s):find(%q, 1, true) ~= nil"):format(lines:format(name), base) end
          child:wait(shows("near", near .. "/auth"), "the page of `near`")
          assert(not child:lua("return " .. shows("far", "/auth")), "`far` has no page yet")
          child:lua("_G.release()")
          child:wait(shows("far", far .. "/auth"), "the page of `far`")
          assert(child:lua("return " .. shows("near", near .. "/auth")), "`near` still has its own")
        end)
      end)
    end,
  },
  {
    "closing the window of a sign-in cancels it",
    function(open)
      with_issuer(function(base)
        local child = open({ user = vim.json.encode({ servers = { far = { url = base .. "/mcp" } } }) })
        child:lua([[vim.ui.open = function() return nil, "there is no browser" end]])
        child:command("Mcp")
        child:wait("require('mcp_sidecar.client').workspace().servers.far.status == 'needs-auth'")
        child:command("Mcp auth far")
        child:sees(base .. "/auth")
        local page = assert(child:text():match("(http://%S+/auth%S+)"))
        child:keys("q")
        child:wait("vim.fn.bufwinid('mcp-sign-in://far') == -1")
        local browser = vim.system({ "python3", fixtures .. "remote_browser.py", page }):wait()
        local late = vim.trim(browser.stdout or "")
        child:lua(
          [[require("mcp_sidecar.client").command("mcp.server.auth.paste", { server = "far", address = ... })]],
          late
        )
        child:hears("no sign-in is waiting for this address")
      end)
    end,
  },
}
