-- Tests with public MCP servers. MCP_SIDECAR_SKIP_SERVERS skips them.

local files, everything = vim.env.MCP_SERVER_FILESYSTEM, vim.env.MCP_SERVER_EVERYTHING
if not (files and everything) then return {} end

local user = vim.json.encode({
  servers = {
    files = { command = files, args = { "${workspaceFolder}" } },
    everything = { command = everything },
  },
  policy = { readOnly = "allow-session" },
})

local function with(open, server, opts)
  local child = open(vim.tbl_extend("force", { user = user }, opts or {}))
  child:command("Mcp")
  child:connected(server)
  return child
end

return {
  {
    "a public server writes a file after its diff was shown and allowed",
    function(open)
      local child = with(open, "files", { files = { ["notes.md"] = "milk\nbread\n" } })
      child:lua(
        [[
        local arguments = { path = ..., content = "milk\nbutter\n" }
        require("mcp_sidecar").call("files/write_file", arguments, { requester = "chat" }, function(err, result)
          answered = { err = err, result = result }
        end)
      ]],
        child.workspace .. "/notes.md"
      )
      local prompt = child:prompt()
      assert(prompt:find("plugin `chat`", 1, true) and prompt:find("changes notes.md", 1, true), prompt)
      assert(prompt:find("\n -bread\n", 1, true) and prompt:find("\n +butter", 1, true), prompt)
      child:command("Mcp approve")
      child:answer("y")
      child:wait("answered.result.isError == false")
      assert(table.concat(vim.fn.readfile(child.workspace .. "/notes.md"), " ") == "milk butter")
    end,
  },
  {
    "a question about a file with unsaved changes says so and shows the difference to them",
    function(open)
      local child = with(open, "files", { files = { ["notes.md"] = "milk\nbread\n" } })
      child:command("edit notes.md")
      child:lua([[vim.api.nvim_buf_set_lines(0, 1, 2, false, { "honey" })]])
      child:lua(
        [[
        local arguments = { path = ..., content = "milk\nbutter\n" }
        require("mcp_sidecar").call("files/write_file", arguments, { requester = "chat" }, function() end)
      ]],
        child.workspace .. "/notes.md"
      )
      local prompt = child:prompt()
      assert(prompt:find("has unsaved changes in your editor", 1, true), prompt)
      assert(prompt:find("\n -honey\n", 1, true) and prompt:find("\n +butter", 1, true), prompt)
    end,
  },
  {
    "a field of a public server is set to one of its values, and the result is shown as JSON",
    function(open)
      local child = with(open, "everything")
      child:command("Mcp call everything/get-structured-content")
      child:sees('"location": "New York"')
      child:choose("Chicago")
      child:keys("<Tab>")
      child:sees('"location": "Chicago"')
      child:keys("<CR>")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-result://everything/get-structured-content'")
      child:sees('"temperature":')
      assert(child:lua("return vim.bo.filetype") == "json")
    end,
  },
  {
    "a resource of a public server opens with its filetype, read-only",
    function(open)
      local child = with(open, "everything")
      child:choose("architecture.md")
      child:command("Mcp resources everything")
      child:wait("vim.api.nvim_buf_get_name(0):find('mcp://everything/demo://resource/static/document', 1, true)")
      child:wait("vim.bo.filetype == 'markdown' and vim.api.nvim_buf_line_count(0) > 3")
      assert(child:lua("return not vim.bo.modifiable"))
    end,
  },
  {
    "completions of a public server depend on earlier arguments, and the prompt is inserted",
    function(open)
      local child = with(open, "everything", { files = { ["notes.md"] = "" } })
      child:command("edit notes.md")
      child:lua([[
        offered = {}
        vim.ui.select = function(items, opts, done)
          table.insert(offered, { prompt = opts.prompt, items = items })
          done(vim.tbl_contains(items, "Sales") and "Sales" or items[1])
        end
      ]])
      child:command("Mcp prompts everything/completable-prompt")
      child:sees("Sales")
      local offered = child:lua("return offered")
      assert(#offered == 2 and offered[1].prompt == "department: " and #offered[2].items > 1, vim.inspect(offered))
      assert(child:text():find(offered[2].items[1], 1, true), child:text())
    end,
  },
  {
    "the questions of a public server are answered in a form",
    function(open)
      local child = with(open, "everything")
      child:lua([[
        require("mcp_sidecar").call("everything/trigger-elicitation-request", nil, nil, function(err, result)
          answered = { err = err, result = result }
        end)
      ]])
      child:prompt()
      child:command("Mcp approve")
      child:answer("y")
      child:wait("require('mcp_sidecar.client').workspace().approvals[1].kind == 'elicitation'", "the server asks")
      child:command("Mcp approve")
      child:answer("f")
      child:wait("vim.api.nvim_buf_get_name(0):find('mcp-answer://', 1, true)", "a form")
      child:lua([[vim.cmd('%s/"name": ""/"name": "Ada"/')]])
      child:submit()
      child:wait("vim.inspect(answered.result.content):find('Ada', 1, true)", "the server knows the name")
    end,
  },
  {
    "a tool that runs as a task is allowed, asks a question of its own, and has a result",
    function(open)
      local child = with(open, "everything")
      child:lua([[
        local arguments = { topic = "python", ambiguous = true }
        local given = { requester = "chat" }
        require("mcp_sidecar").call("everything/simulate-research-query", arguments, given, function(err, result)
          answered = { err = err, result = result }
        end)
      ]])
      local prompt = child:prompt()
      assert(prompt:find("simulate-research-query", 1, true) and prompt:find("python", 1, true), prompt)
      child:command("Mcp approve")
      child:answer("y")
      child:wait("require('mcp_sidecar.client').workspace().approvals[1].kind == 'elicitation'", "the task asks")
      child:choose("Python snake species")
      child:command("Mcp approve")
      child:answer("f")
      child:wait(
        "vim.inspect(answered.result.content):find('# Research Report: python (snake)', 1, true)",
        "the report"
      )
    end,
  },
  {
    "a tool that runs as a task shows its status while it runs, and is cancelled with <C-c>",
    function(open)
      local child = with(open, "everything")
      child:command("Mcp call everything/simulate-research-query")
      child:sees('"topic": ""')
      child:lua([[vim.cmd('%s/"topic": ""/"topic": "owls"/')]])
      child:keys("<CR>")
      child:wait("vim.wo.winbar:find('running', 1, true)")
      child:wait(
        "vim.wo.winbar:find('sources', 1, true) or vim.wo.winbar:find('nalyz', 1, true)",
        "the status of the task"
      )
      child:keys("<C-c>")
      child:hears("cancelled")
      child:lua(
        [[require("mcp_sidecar.client").command("mcp.calls", {}, function(_, list) logged = list.calls[1] end)]]
      )
      child:wait(
        "logged.tool == 'simulate-research-query' and logged.error:find('cancel', 1, true)",
        "it is in the log"
      )
    end,
  },
}
