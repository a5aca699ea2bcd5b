#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_sidecar::fuzzing::run("hook", data));
