-- Downloads of the binary, from a server on loopback.
local Child = require("child")

local binary = table.concat(vim.fn.readfile(Child.repository .. "/editors/nvim/lua/mcp_sidecar/binary.lua"), "\n")
local version = assert(binary:match('M%.version = "([^"]+)"'))

---Answers every request with what `respond` returns for its path: the bytes of the whole response.
local function serve(respond)
  local server = assert(vim.uv.new_tcp())
  assert(server:bind("127.0.0.1", 0))
  server:listen(16, function()
    local peer = assert(vim.uv.new_tcp())
    server:accept(peer)
    local text = ""
    peer:read_start(function(_, chunk)
      text = text .. (chunk or "")
      local path = text:match("^GET (%S+) .-\r\n\r\n")
      if not path then return end
      peer:read_stop()
      peer:write(respond(path), function()
        peer:shutdown(function() peer:close() end)
      end)
    end)
  end)
  return ("http://127.0.0.1:%d/releases"):format(assert(server:getsockname()).port), function() server:close() end
end

local function response(status, body, length)
  return ("HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"):format(status, length or #body, body)
end

---An archive with a program that reports a version and says that it was started.
local function archive(reported)
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder .. "/mcp-sidecar", "p")
  local program = folder .. "/mcp-sidecar/mcp-sidecar"
  vim.fn.writefile({ "#!/bin/sh", ("echo 'mcp-sidecar %s'"):format(reported) }, program)
  vim.fn.setfperm(program, "rwxr-xr-x")
  assert(vim.system({ "tar", "-czf", folder .. "/it.tar.gz", "-C", folder, "mcp-sidecar" }):wait().code == 0)
  local sum = assert(vim.system({ "sha256sum", folder .. "/it.tar.gz" }, { text = true }):wait().stdout):sub(1, 64)
  local file = assert(io.open(folder .. "/it.tar.gz", "rb"))
  local bytes = file:read("*a")
  file:close()
  return bytes, sum
end

local platform = vim.uv.os_uname()
local name = ("mcp-sidecar-%s-%s-unknown-linux-gnu.tar.gz"):format(version, platform.machine)
local bytes, sum = archive(version)

---A release whose parts can be replaced.
local function release(parts)
  return serve(function(path)
    if path == "/releases/v" .. version .. "/SHA256SUMS" then
      return parts.sums
        or response("200 OK", ("%s  other.tar.gz\n%s  %s\n"):format(("0"):rep(64), parts.sum or sum, name))
    end
    assert(path == "/releases/v" .. version .. "/" .. name, path)
    return parts.archive or response("200 OK", bytes)
  end)
end

---@param url? string
---@param more? string
local function without_binary(url, more)
  return function(place)
    Child.copy_repository(place .. "/plugin")
    return ([[
      vim.opt.runtimepath:prepend(%q)
      vim.g.mcp_sidecar = { release_url = %s }
      %s
    ]]):format(place .. "/plugin", url and ("%q"):format(url) or "nil", more or "")
  end
end

---The files that a download has left.
local function left(child) return vim.fn.glob(child.place .. "/plugin/bin/**/*", false, true) end

---A download that fails with this message, and leaves nothing.
local function fails(parts, message)
  return function(open)
    local url, close = release(parts)
    local child = open({ init = without_binary(url) })
    child:command("Mcp install")
    child:hears(message)
    child:hears("install mcp-sidecar by hand (`:help mcp-sidecar-install`)")
    close()
    assert(#left(child) == 0, table.concat(left(child), "\n"))
    child:command("Mcp")
    child:hears("mcp-sidecar is not installed: run `:Mcp install`")
  end
end

return {
  {
    "`:Mcp install` downloads the release for this platform, and the health report says that it runs",
    function(open)
      local url, close = release({})
      local child = open({ init = without_binary(url), project = "{}" })
      child:command("edit mcp.json")
      child:hears("mcp-sidecar is not installed: run `:Mcp install`")
      child:command("Mcp install")
      child:hears(("mcp-sidecar %s is ready"):format(version))
      close()
      local program = ("%s/plugin/bin/%s/mcp-sidecar"):format(child.place, version)
      local used = child:lua("return require('mcp_sidecar.binary').cmd()")[1]
      assert(vim.uv.fs_realpath(used) == vim.uv.fs_realpath(program), used)
      assert(#left(child) == 2, table.concat(left(child), "\n"))
      child:command("checkhealth mcp_sidecar")
      child:sees("downloaded by the plugin")
    end,
  },
  {
    "a download with another checksum is not installed",
    fails({ sum = ("a"):rep(64) }, "does not match the checksum of the release; nothing was installed"),
  },
  { "a release that does not exist is reported", fails({ sums = response("404 Not Found", "no") }, "error: 404") },
  { "a release without this platform is reported", fails({ sums = response("200 OK", "") }, "has no " .. name) },
  {
    "a download that is interrupted leaves nothing",
    fails({ archive = response("200 OK", bytes:sub(1, 100), #bytes) }, "cannot download"),
  },
  {
    "without a network, one sentence says what to do",
    function(open)
      local url, close = release({})
      close()
      local child = open({ init = without_binary(url) })
      child:command("Mcp install")
      child:hears("install mcp-sidecar by hand (`:help mcp-sidecar-install`)")
      local notes = child:lua("return notes")
      assert(#notes == 2 and notes[2]:find("cannot download " .. url, 1, true), table.concat(notes, "\n"))
    end,
  },
  {
    "only https and this machine are downloaded from",
    function(open)
      for url, message in pairs({
        ["http://example.org/releases"] = "must be an https URL",
        ["file:///etc"] = "must be an https URL",
      }) do
        local child = open({ init = without_binary(url) })
        child:command("Mcp install")
        child:hears(message)
      end
    end,
  },
  {
    "the release is at the repository that the plugin was cloned from",
    function(open)
      local child = open({ init = without_binary(nil) })
      child:command("Mcp install")
      child:hears("no release is known: set vim.g.mcp_sidecar.release_url")
      for origin, url in pairs({
        ["https://example.org/ada/mcp-sidecar.git"] = "https://example.org/ada/mcp-sidecar/releases/download/v",
        ["git@example.org:ada/mcp-sidecar.git"] = "https://example.org/ada/mcp-sidecar/releases/download/v",
        ["ssh://git@example.org/ada/mcp-sidecar"] = "https://example.org/ada/mcp-sidecar/releases/download/v",
      }) do
        local found = child:lua("return require('mcp_sidecar.install').release_of(...)", origin)
        assert(found == url .. version .. "/", found)
      end
    end,
  },
  {
    "lazy.nvim runs build.lua, which downloads and keeps the editor usable",
    function(open)
      local url, close = release({})
      -- The plugin is not loaded: only its folder is known.
      local child = open({
        init = function(place)
          without_binary(url)(place)
          return ("vim.g.mcp_sidecar = { release_url = %q }"):format(url)
        end,
      })
      child:lua(
        [[
        -- As lazy.nvim does: a coroutine that is resumed in each round of the event loop.
        local place, check = ..., vim.uv.new_check()
        local thread = coroutine.create(function()
          local ok, problem = pcall(assert(loadfile(place .. "/plugin/build.lua")))
          built = ok and "built" or problem
        end)
        said = {}
        check:start(vim.schedule_wrap(function()
          if coroutine.status(thread) ~= "suspended" then return check:stop() end
          local ok, message = coroutine.resume(thread)
          if message then table.insert(said, message) end
        end))
      ]],
        child.place
      )
      child:wait("built")
      close()
      assert(child:lua("return built") == "built", child:lua("return built"))
      assert(child:lua("return said[1]") == "downloading mcp-sidecar " .. version)
      assert(#left(child) == 2)
      local loaded = "vim.tbl_filter(function(name) return name:find('mcp_sidecar') end, vim.tbl_keys(package.loaded))"
      assert(#child:lua("return " .. loaded) == 0 and child:lua("return vim.fn.exists(':Mcp')") == 0, "it was loaded")
    end,
  },
  {
    "a binary on the PATH is used only if its version fits",
    function(open)
      local function on_path(reported)
        return without_binary(
          nil,
          ([[
          vim.fn.mkdir(vim.env.XDG_CONFIG_HOME .. "/bin", "p")
          local program = vim.env.XDG_CONFIG_HOME .. "/bin/mcp-sidecar"
          vim.fn.writefile({ "#!/bin/sh", "echo mcp-sidecar %s" }, program)
          vim.fn.setfperm(program, "rwxr-xr-x")
          vim.env.PATH = vim.fs.dirname(program) .. ":" .. vim.env.PATH
        ]]):format(reported)
        )
      end
      local own = assert(vim.version.parse(version))
      for reported, fits in pairs({
        [version] = true,
        [("%d.%d.%d"):format(own.major, own.minor, own.patch + 1)] = true,
        [("%d.%d.0"):format(own.major, own.minor + 1)] = false,
        [version .. "-alpha"] = false,
        ["nonsense"] = false,
      }) do
        local child = open({ init = on_path(reported) })
        local cmd = child:lua("return require('mcp_sidecar.binary').cmd()")
        assert((cmd ~= vim.NIL) == fits, reported)
        if not fits then
          child:command("checkhealth mcp_sidecar")
          child:sees("not used: ")
          child:sees("`:Mcp install` downloads version " .. version)
        end
      end
    end,
  },
  {
    "the plugin has the version of the binary",
    function()
      local text = table.concat(vim.fn.readfile(Child.repository .. "/Cargo.toml"), "\n")
      assert(text:match('\nversion = "([^"]+)"') == version)
    end,
  },
}
