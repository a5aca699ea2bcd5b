class McpSidecar < Formula
  desc "Runs the MCP servers of your mcp.json next to your editor"
  homepage "${repository}"
  version "${version}"
  license any_of: ["MIT", "Apache-2.0"]

${homebrew}

  def install
    bin.install "mcp-sidecar"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/mcp-sidecar.bash" => "mcp-sidecar"
    fish_completion.install "completions/mcp-sidecar.fish"
    zsh_completion.install "completions/_mcp-sidecar"
    doc.install "THIRD-PARTY-LICENSES.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcp-sidecar --version")
  end
end
