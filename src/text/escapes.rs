//! Searches escaped text. `\u0074`, `\x74`, `\/` and `%74` are other ways to write a character, so a secret may be written
//! with them. It may also be broken into lines.

use std::ops::Range;

/// The maximum number of nested encodings, such as JSON in a JSON string in a URL.
const ROUNDS: usize = 3;

/// Whether `is_match` returns `true` for any decoded form of the text.
pub fn any(text: &str, is_match: impl Fn(&[u8]) -> bool) -> bool {
    let joined = |read: &[u8]| next_line(read).is_some() && is_match(&undone(read, LINES));
    let mut read = text.as_bytes().to_vec();
    for _ in 0..ROUNDS {
        if joined(&read) {
            return true;
        }
        if next_escape(&read).is_none() {
            return false;
        }
        read = undone(&read, ESCAPES);
        if is_match(&read) {
            return true;
        }
    }
    joined(&read)
}

/// The ranges in `text` that correspond to what `find` returns for its decoded forms.
pub fn places(text: &str, find: impl Fn(&[u8]) -> Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut readings = vec![text.as_bytes().to_vec()];
    let mut all = Vec::new();
    // Maps what was found in a reading of the last one back to the text.
    let back = |readings: &[Vec<u8>], mut found: Vec<Range<usize>>| {
        for before in readings.iter().rev() {
            found = written(before, found, ESCAPES);
        }
        found
    };
    for round in 0..=ROUNDS {
        let Some((read, before)) = readings.split_last() else { break };
        if next_line(read).is_some() {
            let found = written(read, find(&undone(read, LINES)), LINES);
            all.extend(back(before, found));
        }
        if round == ROUNDS || next_escape(read).is_none() {
            break;
        }
        let read = undone(read, ESCAPES);
        all.extend(back(&readings, find(&read)));
        readings.push(read);
    }
    let whole = |range: Range<usize>| text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
    all.into_iter().map(whole).collect()
}

fn next_escape(text: &[u8]) -> Option<usize> {
    memchr::memchr2(b'\\', b'%', text)
}

fn next_line(text: &[u8]) -> Option<usize> {
    memchr::memchr2(b'\n', b'\r', text)
}

/// How a text is read.
#[derive(Clone, Copy)]
struct Decode {
    /// Reads one unit.
    unit: fn(&[u8], usize) -> Option<Unit>,
    /// Finds the next unit that is not just one byte.
    next: fn(&[u8]) -> Option<usize>,
}

const ESCAPES: Decode = Decode { unit, next: next_escape };
const LINES: Decode = Decode { unit: joined, next: next_line };

/// One byte; a line break and the blanks after it are nothing.
fn joined(text: &[u8], at: usize) -> Option<Unit> {
    let rest = text.get(at..)?;
    let first = *rest.first()?;
    let line_break = if rest.starts_with(b"\r\n") { 2 } else { usize::from(matches!(first, b'\n' | b'\r')) };
    if line_break == 0 {
        return Some(Unit { length: 1, bytes: [first, 0, 0, 0], count: 1 });
    }
    let blanks = rest.iter().skip(line_break).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(Unit { length: line_break + blanks, bytes: [0; 4], count: 0 })
}

fn undone(text: &[u8], decode: Decode) -> Vec<u8> {
    let mut read = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = (decode.next)(rest) {
        let Some(((plain, special), unit)) = rest.split_at_checked(at).zip((decode.unit)(rest, at)) else { break };
        read.extend_from_slice(plain);
        read.extend_from_slice(unit.bytes.get(..unit.count).unwrap_or_default());
        rest = special.get(unit.length..).unwrap_or_default();
    }
    read.extend_from_slice(rest);
    read
}

/// Maps ranges of the decoded text to the text itself.
fn written(text: &[u8], mut ranges: Vec<Range<usize>>, decode: Decode) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    // Ranges may overlap, so starts and ends are mapped separately, each in one pass.
    let mut ends: Vec<usize> = ranges.iter().map(|range| range.end).collect();
    ends.sort_unstable();
    let starts: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    let starts = walk(text, &starts, decode, |at, _| at);
    let places = walk(text, &ends, decode, |_, next| next);
    let place = |range: &Range<usize>, start: usize| {
        let end = ends.binary_search(&range.end).ok().and_then(|index| places.get(index).copied());
        start..end.unwrap_or(text.len())
    };
    ranges.iter().zip(starts).map(|(range, start)| place(range, start)).collect()
}

/// For each sorted offset of the decoded text, the unit that contains it (or, for an end, that ends at it).
fn walk(text: &[u8], offsets: &[usize], decode: Decode, choose: impl Fn(usize, usize) -> usize) -> Vec<usize> {
    let is_end = choose(0, 1) == 1;
    let mut found = Vec::with_capacity(offsets.len());
    let (mut at, mut read) = (0, 0);
    for offset in offsets {
        let mut place = text.len();
        while let Some(unit) = (decode.unit)(text, at) {
            let behind = read + unit.count;
            if if is_end { behind >= *offset } else { behind > *offset } {
                place = choose(at, at + unit.length);
                break;
            }
            read = behind;
            at += unit.length;
        }
        found.push(place);
    }
    found
}

/// One byte, or one escape with its decoded bytes.
struct Unit {
    length: usize,
    bytes: [u8; 4],
    count: usize,
}

fn unit(text: &[u8], at: usize) -> Option<Unit> {
    let first = *text.get(at)?;
    let byte = |length: usize, byte: u8| Some(Unit { length, bytes: [byte, 0, 0, 0], count: 1 });
    let rest = text.get(at + 1..).unwrap_or_default();
    match (first, rest.first()) {
        (b'%', _) => match hex(rest.get(..2)) {
            Some(code) => byte(3, u8::try_from(code).unwrap_or(b'%')),
            None => byte(1, first),
        },
        (b'\\', Some(b'u')) => match escaped(rest.get(1..).unwrap_or_default()) {
            Some((c, length)) => {
                let mut bytes = [0; 4];
                let count = c.encode_utf8(&mut bytes).len();
                Some(Unit { length: length + 2, bytes, count })
            }
            None => byte(1, first),
        },
        (b'\\', Some(b'x')) => match hex(rest.get(1..3)) {
            Some(code) => byte(4, u8::try_from(code).unwrap_or(b'\\')),
            None => byte(1, first),
        },
        (b'\\', Some(next @ (b'/' | b'"' | b'\\' | b'\''))) => byte(2, *next),
        (b'\\', Some(b'n')) => byte(2, b'\n'),
        (b'\\', Some(b'r')) => byte(2, b'\r'),
        (b'\\', Some(b't')) => byte(2, b'\t'),
        _ => byte(1, first),
    }
}

/// The character for `0074` or `d83d\ude00`, and the number of bytes read.
fn escaped(digits: &[u8]) -> Option<(char, usize)> {
    let high = hex(digits.get(..4))?;
    if let Some(c) = char::from_u32(high) {
        return Some((c, 4));
    }
    let low = hex(digits.get(4..).and_then(|rest| rest.strip_prefix(b"\\u")).and_then(|rest| rest.get(..4)))?;
    let both = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
    let c = char::decode_utf16(both).next()?.ok()?;
    Some((c, 10))
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let mut code = 0;
    for digit in digits? {
        code = code * 16 + char::from(*digit).to_digit(16)?;
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, word: &str) -> String {
        let find = |read: &[u8]| -> Vec<Range<usize>> {
            let read = String::from_utf8_lossy(read).into_owned();
            read.match_indices(word).map(|(at, _)| at..at + word.len()).collect()
        };
        let found = any(text, |read| !find(read).is_empty());
        let places = places(text, find);
        assert_eq!(found, !places.is_empty());
        places.iter().filter_map(|place| text.get(place.clone())).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn a_word_is_found_if_it_is_escaped() {
        assert_eq!(marked(r#"{"a":"x tok\/en y"}"#, "tok/en"), r"tok\/en");
        assert_eq!(marked(r#""\u0074\u006Fk/en","tok/e\u006e""#, "tok/en"), r"\u0074\u006Fk/en | tok/e\u006e");
        assert_eq!(marked("a=%74%6f%6B/%65n&b", "tok/en"), "%74%6f%6B/%65n");
        assert_eq!(marked(r#""{\"a\":\"tok\\\/en\"}""#, "tok/en"), r"tok\\\/en");
        assert_eq!(marked(r"é\u00e9😀\ud83d\ude00 tok%2Fen", "é😀😀 tok/en"), r"\u00e9😀\ud83d\ude00 tok%2Fen");
        assert_eq!(marked(r"\x74ok/\x65n", "tok/en"), r"\x74ok/\x65n");
        assert_eq!(marked("a tok\n  /e\r\nn b\ntok/en", "tok/en"), "tok\n  /e\r\nn | tok/en");
        assert_eq!(marked(r"tok\n/en %0Atok", "tok/en"), r"tok\n/en");
        assert_eq!(marked(r"100% sure \ \u00 \ud83d %zz tok", "tok/en"), "");
    }
}
