//! Parses and writes durations and sizes: `30`, `"500ms"`, `"5m"`; `65536`, `"16 MiB"`.

use std::time::Duration;

use serde_json::Value;

/// Longer durations are a mistake, and much longer ones would overflow the clock.
const MAX_DURATION: Duration = Duration::from_secs(366 * 86_400);
/// More than any limit needs, and small enough to multiply without overflow.
const MAX_VALUE: usize = 1 << 40;

const DURATIONS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A number of seconds, or a string with a unit.
pub(super) fn duration(value: &Value) -> Result<Duration, String> {
    let millis = match value {
        Value::Number(seconds) => seconds.as_f64().map(|seconds| seconds * 1000.0),
        Value::String(text) => with_unit(text, &DURATIONS, 1_000),
        _ => None,
    };
    let millis = millis
        .filter(|millis| millis.is_finite())
        .ok_or("expected a number of seconds, or a string such as \"500ms\" or \"5m\"")?;
    if millis < 1.0 {
        return Err("must be at least 1 ms".to_owned());
    }
    let duration = Duration::from_millis(millis.min(u64::MAX as f64) as u64);
    if duration > MAX_DURATION { Err("must be at most one year".to_owned()) } else { Ok(duration) }
}

/// A number of bytes, or a string with a unit.
pub(super) fn bytes(value: &Value) -> Result<usize, String> {
    let bytes = match value {
        Value::Number(bytes) => bytes.as_u64().map(|bytes| bytes as f64),
        Value::String(text) => with_unit(text, &SIZES, 1),
        _ => None,
    };
    whole(bytes, "expected a number of bytes, or a string such as \"64 KiB\" or \"16 MiB\"")
}

pub(super) fn count(value: &Value) -> Result<usize, String> {
    whole(value.as_u64().map(|count| count as f64), "expected a whole number")
}

fn whole(number: Option<f64>, expected: &str) -> Result<usize, String> {
    let number = number.ok_or(expected)?;
    if number < 1.0 {
        return Err("must be at least 1".to_owned());
    }
    if number > MAX_VALUE as f64 { Err("must be smaller".to_owned()) } else { Ok(number as usize) }
}

fn with_unit(text: &str, units: &[(&str, u64)], plain: u64) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let scale = match unit.trim() {
        "" => plain,
        unit => units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1,
    };
    Some(number * scale as f64)
}

/// Uses the largest unit that is exact.
pub(super) fn write_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    // Skip days: "24h" is as readable as "1d".
    let (unit, scale) = DURATIONS
        .iter()
        .skip(1)
        .find(|(_, scale)| millis >= *scale && millis.is_multiple_of(*scale))
        .unwrap_or(&("ms", 1));
    format!("{}{unit}", millis / scale)
}

pub(super) fn write_bytes(bytes: usize) -> String {
    let bytes = bytes as u64;
    let (unit, scale) =
        SIZES.iter().find(|(_, scale)| bytes >= *scale && bytes.is_multiple_of(*scale)).unwrap_or(&("B", 1));
    format!("{} {unit}", bytes / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        assert_eq!(duration(&json!(30)), Ok(Duration::from_secs(30)));
        assert_eq!(duration(&json!(0.5)), Ok(Duration::from_millis(500)));
        assert_eq!(duration(&json!("500ms")), Ok(Duration::from_millis(500)));
        assert_eq!(duration(&json!("5m")), Ok(Duration::from_secs(300)));
        assert_eq!(duration(&json!("1.5 h")), Ok(Duration::from_secs(5400)));
        assert_eq!(duration(&json!("45")), Ok(Duration::from_secs(45)));
        for wrong in [json!("soon"), json!("5 parsecs"), json!(true), json!(0), json!(-3), json!("900d"), json!("")] {
            assert!(duration(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_bytes_or_have_a_unit() {
        assert_eq!(bytes(&json!(4096)), Ok(4096));
        assert_eq!(bytes(&json!("16 MiB")), Ok(16 << 20));
        assert_eq!(bytes(&json!("64kib")), Ok(64 << 10));
        for wrong in [json!("many"), json!(-1), json!(1.5), json!(0), json!([])] {
            assert!(bytes(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn written_values_can_be_parsed() {
        for millis in [1, 500, 1000, 1500, 60_000, 90_000, 300_000, 3_600_000, 86_400_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(super::duration(&json!(write_duration(duration))), Ok(duration));
        }
        assert_eq!(write_duration(Duration::from_secs(90)), "90s");
        assert_eq!(write_bytes(16 << 20), "16 MiB");
        assert_eq!(write_bytes(1000), "1000 B");
    }
}
