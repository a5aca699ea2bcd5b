//! Points in time for the wire and the database. Timeouts use the monotonic clock instead.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A point in time, RFC 3339 in UTC with milliseconds when written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(OffsetDateTime);

impl Timestamp {
    pub fn now() -> Self {
        Self::from_unix_millis(OffsetDateTime::now_utc().unix_timestamp_nanos().div_euclid(1_000_000) as i64)
    }

    pub fn from_unix_millis(millis: i64) -> Self {
        Self(
            OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
                .unwrap_or(OffsetDateTime::UNIX_EPOCH),
        )
    }

    pub fn unix_millis(self) -> i64 {
        (self.0.unix_timestamp_nanos() / 1_000_000) as i64
    }

    /// The number of the day, in UTC.
    pub fn day(self) -> i64 {
        self.0.unix_timestamp().div_euclid(86_400)
    }

    pub fn days_before(self, days: u32) -> Self {
        Self(self.0.saturating_sub(time::Duration::days(days.into())))
    }

    pub fn parse(text: &str) -> Option<Self> {
        OffsetDateTime::parse(text, &Rfc3339).ok().map(Self)
    }

    pub fn plus(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait.try_into().unwrap_or(time::Duration::MAX)))
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let t = self.0.to_offset(time::UtcOffset::UTC);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            t.year(),
            u8::from(t.month()),
            t.day(),
            t.hour(),
            t.minute(),
            t.second(),
            t.millisecond()
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a time in RFC 3339"))
    }
}

/// A duration as on the wire: milliseconds, rounded to microseconds.
pub fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
