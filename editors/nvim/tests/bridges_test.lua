-- No package registry has the chat plugins, so these tests use stubs with the same interfaces.

local Child = require("child")

local codecompanion = [[
  chat = { interactions = { chat = { tools = { mine = { description = "its own" } } } } }
  package.loaded["codecompanion.config"] = chat
  require("codecompanion._extensions.mcp_sidecar").setup()
  log = { add_tool_output = function(_, _, text) told = text end }
]]

local copilotchat = [[
  functions = {}
  package.loaded["CopilotChat"] = { config = { functions = functions } }
  -- What plenary does: a function whose last argument is a callback becomes one that waits in a coroutine.
  package.loaded["plenary.async"] = { wrap = function(run)
    return function()
      local thread = coroutine.running()
      run(function(...) coroutine.resume(thread, ...) end)
      return coroutine.yield()
    end
  end }
  require("mcp_sidecar.bridges.copilotchat").setup()
]]

local function allow(child, requester)
  local prompt = child:prompt()
  assert(prompt:find(requester, 1, true), prompt)
  child:command("Mcp approve")
  child:answer("y")
end

return {
  {
    "CodeCompanion gets the tools, and its calls need approval",
    function(open)
      local child = Child.ready(open)
      child:lua(codecompanion)
      child:wait("chat.interactions.chat.tools.mcp__demo__take_note ~= nil")
      child:wait("#chat.interactions.chat.tools.groups.mcp_demo.tools == 9")
      child:lua([[
        local tool = chat.interactions.chat.tools.mcp__demo__take_note.callback()
        tool.cmds[1]({}, { text = "from a chat" }, { output_cb = function(output)
          answered = output
          tool.output[output.status](tool, { output.data }, { tools = { chat = log } })
        end })
      ]])
      allow(child, "CodeCompanion")
      child:wait("answered.status == 'success' and told:find('1', 1, true)")
    end,
  },
  {
    "CodeCompanion v18 passes its arguments in another order",
    function(open)
      local child = Child.ready(open)
      child:lua(codecompanion)
      child:wait("chat.interactions.chat.tools.mcp__demo__echo ~= nil")
      child:lua([[
        local tool = chat.interactions.chat.tools.mcp__demo__echo.callback()
        tool.cmds[1]({}, { text = "hey" }, nil, function(output)
          tool.output[output.status](tool, { chat = log }, {}, { output.data })
        end)
      ]])
      child:wait("told == 'hey'")
    end,
  },
  {
    "tools of a stopped server are removed from the chat, its own tools stay",
    function(open)
      local child = Child.ready(open)
      child:lua(codecompanion)
      child:wait("chat.interactions.chat.tools.mcp__demo__echo ~= nil")
      child:command("Mcp stop demo")
      child:wait("chat.interactions.chat.tools.mcp__demo__echo == nil", "the tool is gone")
      child:wait("chat.interactions.chat.tools.groups.mcp_demo == nil", "the group is gone")
      assert(child:lua("return chat.interactions.chat.tools.mine.description") == "its own")
    end,
  },
  {
    "avante gets the tools in its format, and a denied call as an error",
    function(open)
      local child = Child.ready(open)
      child:wait("#require('mcp_sidecar.bridges.avante').tools() == 9")
      child:lua([[
        for _, tool in ipairs(require("mcp_sidecar.bridges.avante").tools()) do
          if tool.name == "mcp__demo__take_note" then
            field = tool.param.fields[1]
            tool.func({ text = "from avante" }, { on_complete = function(text, err) answered = { text, err } end })
          end
        end
      ]])
      local field = child:lua("return field")
      assert(field.name == "text" and field.type == "string" and not field.optional, vim.inspect(field))
      assert(child:prompt():find("avante", 1, true))
      child:command("Mcp approve")
      child:answer("n")
      child:wait("answered[2]:find('denied', 1, true)")
    end,
  },
  {
    "CopilotChat gets the tools as functions that wait for their result",
    function(open)
      local child = Child.ready(open)
      child:lua(copilotchat)
      child:wait("functions.mcp__demo__take_note ~= nil")
      child:lua([[
        coroutine.wrap(function() answered = functions.mcp__demo__take_note.resolve({ text = "from a chat" }) end)()
      ]])
      allow(child, "CopilotChat")
      child:wait("answered[1].uri == nil and answered[1].data:find('1', 1, true)")
    end,
  },
  {
    "CodeCompanion gets prompts and resources as slash commands, which the user is not asked about",
    function(open)
      local child = Child.ready(open)
      child:lua(codecompanion)
      child:wait("chat.interactions.chat.slash_commands.mcp__demo__greet ~= nil")
      child:wait("chat.interactions.chat.slash_commands.mcp_resource ~= nil")
      child:choose("French", "demo://notes")
      child:lua([[
        local commands, put = chat.interactions.chat.slash_commands, {}
        function put:add_buf_message(message) greeting = message.content end
        function put:add_context(data, source, id) context = { data.content, source, id } end
        commands.mcp__demo__greet.callback(put)
        commands.mcp_resource.callback(put)
      ]])
      child:wait("greeting:find('Bonjour', 1, true)")
      child:wait("context[1]:find('Resource demo/demo://notes:', 1, true) and context[2] == 'mcp_sidecar'")
      assert(child:lua("return context[3]") == "<mcp>demo/demo://notes</mcp>")
      assert(child:lua("return #require('mcp_sidecar.client').workspace().approvals") == 0)
      child:command("Mcp stop demo")
      child:wait("chat.interactions.chat.slash_commands.mcp__demo__greet == nil", "the command is gone")
    end,
  },
  {
    "avante gets prompts and resources as slash commands that fill its input",
    function(open)
      local child = Child.ready(open)
      child:lua([[
        own = { name = "mine" }
        package.loaded["avante.config"] = { slash_commands = { own } }
        require("mcp_sidecar.bridges.avante").setup()
        function command(name)
          local list = package.loaded["avante.config"].slash_commands
          return vim.iter(list):find(function(each) return each.name == name end)
        end
      ]])
      child:wait("command('mcp__demo__greet') ~= nil and command('mcp_resource') ~= nil")
      child:choose("French", "demo://notes")
      child:lua([[
        input = vim.api.nvim_create_buf(false, true)
        local sidebar = { containers = { input = { bufnr = input } } }
        command("mcp__demo__greet").callback(sidebar, "")
        command("mcp_resource").callback(sidebar, "")
      ]])
      child:wait("table.concat(vim.api.nvim_buf_get_lines(input, 0, -1, false)):find('Bonjour', 1, true)")
      child:wait("table.concat(vim.api.nvim_buf_get_lines(input, 0, -1, false)):find('Resource demo/', 1, true)")
      child:command("Mcp stop demo")
      child:wait("command('mcp__demo__greet') == nil", "the command is gone")
      assert(child:lua("return command('mine') == own"), "other commands stay")
    end,
  },
  {
    "CopilotChat gets resources and prompts as functions, and a model is asked about what no server lists",
    function(open)
      local child = Child.ready(open)
      child:lua(copilotchat)
      child:wait("functions.mcp__demo__resource ~= nil and functions.mcp__demo__prompt_greet ~= nil")
      local schema = child:lua("return functions.mcp__demo__prompt_greet.schema.properties")
      assert(schema.language.type == "string", vim.inspect(schema))
      child:lua([[
        coroutine.wrap(function() notes_read = functions.mcp__demo__resource.resolve({ uri = "demo://notes" }) end)()
        coroutine.wrap(function() greeting = functions.mcp__demo__prompt_greet.resolve({ language = "French" }) end)()
      ]])
      child:wait("notes_read[1].uri == 'mcp://demo/demo://notes'")
      child:wait("greeting[1].data:find('Bonjour', 1, true)")
      child:lua([[
        coroutine.wrap(function()
          other = { pcall(functions.mcp__demo__resource.resolve, { uri = "demo://note/7" }) }
        end)()
      ]])
      local prompt = child:prompt()
      assert(prompt:find("CopilotChat", 1, true), prompt)
      child:command("Mcp approve")
      child:answer("n")
      child:wait("other[1] == false and other[2]:find('denied', 1, true)")
    end,
  },
}
