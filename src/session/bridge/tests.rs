use std::io::Read;
use std::os::fd::OwnedFd;

use super::*;

fn call(id: u32) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{}}}}\n").into_bytes()
}

/// A bridge with this link, and what its program reads.
fn bridge(link: Link) -> (Bridge<AgentMemory>, std::io::PipeReader) {
    let (shown, output) = std::io::pipe().unwrap();
    let state = State { memory: AgentMemory::default(), link, ended: false };
    let output = buffered(File::from(OwnedFd::from(output)));
    (Bridge { state: Mutex::new(state), changed: Condvar::new(), output }, shown)
}

fn received(engine: &mut UnixStream, expected: &[u8]) {
    engine.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut received = vec![0; expected.len()];
    engine.read_exact(&mut received).unwrap();
    assert_eq!(String::from_utf8_lossy(&received), String::from_utf8_lossy(expected));
}

#[test]
fn a_program_that_leaves_while_the_next_engine_starts_has_left_there_too() {
    let (bridge, _shown) = bridge(Link::Joining);
    bridge.read_program(io::empty());
    let (stream, mut engine) = UnixStream::pair().unwrap();
    bridge.open(&stream).unwrap();
    engine.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut received = Vec::new();
    engine.read_to_end(&mut received).expect("the engine is told that the input has ended");
}

#[test]
fn messages_that_are_read_together_are_written_together() {
    let (stream, mut engine) = UnixStream::pair().unwrap();
    let (bridge, _shown) = bridge(Link::Open(Arc::new(stream)));
    let both = [call(1), call(2)].concat();
    let (first, rest) = both.split_at(both.len() - 7);
    // The end of the second message comes later: the first one does not wait for it.
    let (rest_sender, rest_reader) = std::io::pipe().map(|(reader, writer)| (writer, reader)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| bridge.read_program(first.chain(rest_reader)));
        received(&mut engine, &call(1));
        let mut rest_sender = rest_sender;
        rest_sender.write_all(rest).unwrap();
        rest_sender.write_all(&call(3)).unwrap();
        received(&mut engine, &[call(2), call(3)].concat());
        drop(rest_sender);
    });
}

#[test]
fn calls_that_an_engine_cannot_have_received_go_to_the_next_one_in_their_order() {
    let (stream, engine) = UnixStream::pair().unwrap();
    let (bridge, mut shown) = bridge(Link::Open(Arc::new(stream)));
    let mut batch = Batch::default();
    bridge.send(&call(1), &mut batch);
    bridge.send(&call(2), &mut batch);
    drop(engine);
    bridge.lose().unwrap();
    let (next, mut next_engine) = UnixStream::pair().unwrap();
    bridge.open(&next).unwrap();
    bridge.send(&call(3), &mut batch);
    bridge.flush(&mut batch);
    received(&mut next_engine, &[call(1), call(2), call(3)].concat());

    // These may have been carried out.
    bridge.lose().unwrap();
    drop(bridge);
    let mut answers = String::new();
    shown.read_to_string(&mut answers).unwrap();
    assert_eq!((answers.lines().count(), answers.matches("may have been executed").count()), (3, 3), "{answers}");
}

#[test]
fn only_what_was_not_written_whole_is_sent_again() {
    let (stream, _engine) = UnixStream::pair().unwrap();
    let stream = Arc::new(stream);
    let (bridge, _shown) = bridge(Link::Open(stream.clone()));
    // Nothing reads, so only a part of it can be written.
    stream.set_nonblocking(true).unwrap();
    let mut batch = Batch::default();
    let large = [call(2).trim_ascii_end(), &vec![b' '; 8 << 20], b"\n"].concat();
    for message in [call(1), large, call(3)] {
        let Admitted::Sent(stream, sent, id) = bridge.admit(&message, None) else { panic!("it is open") };
        batch.add(stream, &sent, id);
    }
    let again = bridge.write_batch(&stream, &batch.bytes, &batch.calls);
    assert_eq!(again.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["2", "3"]);
    assert!(matches!(bridge.lock().link, Link::Joining));
}
