//! Times in microseconds since 1970, UTC, and their text.

use crate::error::{Error, Result};

const DAY: i64 = 86_400_000_000;

/// As orjson writes a time: fractions only where there are some, always six digits.
pub fn row_text(micros: i64) -> String {
    let (second, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    match fraction {
        0 => format!("{}Z", second_text(second)),
        _ => format!("{}.{fraction:06}Z", second_text(second)),
    }
}

/// As the envelope's canonical JSON has it: always milliseconds.
pub fn envelope_text(millis: i64) -> String {
    format!("{}.{:03}Z", second_text(millis.div_euclid(1000)), millis.rem_euclid(1000))
}

/// Parse `2026-01-01T00:00:00Z`, with up to six digits of a second.
pub fn parse(text: &str) -> Result<i64> {
    read(text).ok_or_else(|| Error::new(format!("{text:?} is not a time in UTC")))
}

fn read(text: &str) -> Option<i64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let date: Vec<i64> =
        date.split('-').map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
    let clock: Vec<i64> =
        clock.split(':').map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
    let ([year, month, day], [hour, minute, second]) = (&date[..], &clock[..]) else { return None };
    if fraction.len() > 6 {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    let seconds = (hour * 60 + minute) * 60 + second;
    Some(days(*year, *month, *day) * DAY + seconds * 1_000_000 + micros)
}

fn second_text(second: i64) -> String {
    let (year, month, day) = civil(second.div_euclid(86_400));
    let rest = second.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a number of days since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted - era * 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_and_its_text_agree() {
        for text in
            ["1970-01-01T00:00:00Z", "2024-02-29T23:59:59.000001Z", "2026-05-16T12:34:56.789000Z"]
        {
            assert_eq!(row_text(parse(text).unwrap()), text);
        }
        assert_eq!(envelope_text(1_778_934_896_789), "2026-05-16T12:34:56.789Z");
    }
}
