# Untried: see docs/install.md.
{
  description = "Runs the MCP servers of your mcp.json next to your editor and shares them with your agents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      forSystems = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      manifest = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).package;
    in
    {
      packages = forSystems (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = manifest.name;
          inherit (manifest) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          buildType = "release";
          # The tests start editors and public MCP servers.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = pkgs.lib.optionalString (pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform) ''
            $out/bin/mcp-sidecar man man1
            installManPage man1/*.1
            installShellCompletion --cmd mcp-sidecar \
              --bash <($out/bin/mcp-sidecar completions bash) \
              --fish <($out/bin/mcp-sidecar completions fish) \
              --zsh <($out/bin/mcp-sidecar completions zsh)
          '';
          meta = {
            inherit (manifest) description;
            homepage = manifest.repository;
            license = with pkgs.lib.licenses; [ mit asl20 ];
            mainProgram = "mcp-sidecar";
          };
        };
      });
    };
}
