local Child = require("child")

---An API like that of the MCP registry, on loopback.
---@return integer port
local function serve()
  local path = Child.repository .. "/tests/fixtures/registry.json"
  local all = vim.json.decode(table.concat(vim.fn.readfile(path), "\n")).servers
  local server = assert(vim.uv.new_tcp())
  server:bind("127.0.0.1", 0)
  server:listen(8, function()
    local client = assert(vim.uv.new_tcp())
    server:accept(client)
    client:read_start(function(_, request)
      if not request then return end
      local target = assert(request:match("^GET (%S+)"))
      local name = target:match("^/v0%.1/servers/(.+)/versions/latest$")
      local found = name and vim.iter(all):find(function(each) return each.server.name == name:gsub("%%2F", "/") end)
      local body = vim.json.encode(name and found or { servers = all })
      client:write(("HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"):format(#body, body))
      client:shutdown()
    end)
  end)
  return assert(server:getsockname()).port
end

return {
  {
    "a server of the registry is picked, checked in the form and written",
    function(open)
      local child = open()
      local settings = assert(io.open(child.place .. "/config/config.toml", "w"))
      settings:write(('[registry]\nurl = "http://127.0.0.1:%d"\n'):format(serve()))
      settings:close()
      child:lua([[
        offered = {}
        vim.ui.select = function(items, opts, done)
          for _, item in ipairs(items) do
            table.insert(offered, opts.format_item(item))
          end
          done(items[1], 1)
        end
      ]])
      child:command("Mcp search weather")
      child:wait("vim.api.nvim_buf_get_name(0):find('mcp-server://', 1, true)", "the form")
      local offered = child:lua("return offered")
      assert(offered[1]:find("io.github.example/weather 1.4.0", 1, true), vim.inspect(offered))
      assert(offered[2]:find("looks like `io.github.example/weather`", 1, true), vim.inspect(offered))
      child:sees("@example/weather-mcp@1.4.0")
      local file = child.workspace .. "/mcp.json"
      assert(not vim.uv.fs_stat(file), "nothing is written before the form is sent")
      child:keys("<CR>")
      local gone = "not vim.api.nvim_buf_get_name(0):find('mcp-server://', 1, true)"
      child:wait(gone .. " or table.concat(notes):find('see the warning', 1, true)", "it is saved, or warned about")
      if not child:lua("return " .. gone) then child:keys("<CR>") end
      child:wait(gone, "it is saved")
      local written = table.concat(vim.fn.readfile(file), "\n")
      assert(written:find("${input:weather-WEATHER_API_KEY}", 1, true), written)
    end,
  },
}
