-- Pictures in the terminal: what is sent to it.
local Child = require("child")

---Records what is sent to the terminal instead of sending it.
local record = [[
  sent = {}
  require("mcp_sidecar.ui.images").send = function(sequence) table.insert(sent, sequence) end
]]

local function picture(child)
  child:lua(record)
  child:command("Mcp call demo/picture")
  child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-result://demo/picture'")
  child:sees("![image/png]")
  child:lua("vim.fn.search([[!\\[image]])")
end

---The rows of placeholders below the link.
local placeholders = [[
  local found = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, { details = true })) do
    for _, line in ipairs(mark[4].virt_lines or {}) do
      if line[1][1]:find(vim.fn.nr2char(0x10EEEE), 1, true) then table.insert(found, line[1]) end
    end
  end
  return found
]]

return {
  {
    "kitty gets a PNG in parts, and placeholders below the link stand for it",
    function(open)
      local child = Child.ready(open, { options = '{ images = "kitty" }' })
      picture(child)
      local sent, rows = child:lua("return sent"), child:lua(placeholders)
      local id, columns, lines = sent[1]:match("^\27_Ga=T,U=1,q=2,f=100,t=d,i=(%d+),c=(%d+),r=(%d+),m=[01];")
      assert(id, vim.inspect(sent[1]:sub(1, 100)))
      assert(#rows == tonumber(lines), ("%d rows of %s"):format(#rows, lines))
      assert(child:lua("return vim.api.nvim_strwidth(...)", rows[1][1]) == tonumber(columns))
      local data = {}
      for place, part in ipairs(sent) do
        local more, text = part:match("m=([01]);(.*)\27\\$")
        assert(#text <= 4096 and (more == "0") == (place == #sent), part:sub(1, 60))
        table.insert(data, text)
      end
      local path = child:text():match("%((.*)%)")
      local file = assert(io.open(path, "rb"))
      assert(vim.base64.decode(table.concat(data)) == file:read("*a"), "the picture arrives as it is")
      file:close()
      assert(child:lua("return vim.api.nvim_get_hl(0, { name = ... }).fg", rows[1][2]) == tonumber(id))
    end,
  },
  {
    "sixels are drawn over the screen until the next key",
    function(open)
      local child = Child.ready(open, { options = '{ images = "sixel" }' })
      local encoder = child.place .. "/bin/img2sixel"
      vim.fn.writefile({ "#!/bin/sh", [[printf '\033Pq#0~\033\\']] }, encoder)
      vim.fn.setfperm(encoder, "rwxr-xr-x")
      picture(child)
      assert(#child:lua(placeholders) == 0 and #child:lua("return sent") == 0)
      child:keys("<CR>")
      child:keys("x")
      child:wait("#sent == 1")
      assert(child:lua("return sent[1]"):find("\27Pq#0~\27\\", 1, true))
      child:lua("vim.ui.open = function(path) opened = path end")
      child:keys("gx")
      child:wait("opened:find('%.png$')")
    end,
  },
  {
    "a terminal that cannot show pictures gets a file, and nothing is sent to it",
    function(open)
      local child = Child.ready(open)
      picture(child)
      child:lua("vim.ui.open = function(path) opened = path end")
      child:keys("<CR>")
      child:wait("opened:find('%.png$')")
      assert(#child:lua("return sent") == 0 and #child:lua(placeholders) == 0)
    end,
  },
  {
    "only files that were saved here are drawn",
    function(open)
      local child = Child.ready(open, { options = '{ images = "kitty" }' })
      child:lua(record)
      child:lua([[
        vim.cmd.new()
        local lines = { "![image/png](/etc/passwd)", "![image/png](../x.png)" }
        vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
        require("mcp_sidecar.ui.result").draw_pictures(0, lines)
      ]])
      assert(#child:lua("return sent") == 0)
    end,
  },
}
