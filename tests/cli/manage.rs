//! `add`, `remove`, `enable`, `disable`: config files changed from a shell.

use crate::Place;

#[test]
fn a_server_is_added_switched_and_removed_and_the_rest_of_the_file_stays() {
    let place = Place::with_workspace();
    place.write("work/mcp.json", "{\n  // ours\n  \"servers\": {\n    \"old\": { \"command\": \"old\" }\n  }\n}\n");
    let text = || std::fs::read_to_string(place.path("work/mcp.json")).unwrap();

    let run = place.run(&["add", "new", "--env", "TOKEN=${TOKEN}", "--", "npx", "-y", "some-server"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_eq!(run.out, "added new to the project config\n`mcp-sidecar trust new` lets it start\n");
    assert!(text().contains("// ours") && text().contains("some-server") && text().contains("${TOKEN}"), "{}", text());
    assert_eq!(place.run(&["add", "new", "--url", "https://example.test/mcp"]).code, 1);

    assert_eq!(place.run(&["disable", "new"]).out, "new is disabled in mcp.json\n");
    assert!(place.run(&["list", "--json"]).out.contains("\"disabled\""));
    assert_eq!(place.run(&["enable", "new"]).out, "new is enabled in mcp.json\n");

    assert_eq!(place.run(&["remove", "new"]).out, "removed new from the project config\n");
    assert!(!text().contains("some-server") && text().contains("\"old\""), "{}", text());
    assert_eq!(place.run(&["remove", "new"]).code, 1);
    for wrong in [&["add", "new"][..], &["add", "new", "--config", "["], &["add", "x", "--scope", "session", "--", "y"]]
    {
        assert_eq!(place.run(wrong).code, 2, "{wrong:?}");
    }
}
