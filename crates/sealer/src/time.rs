//! Times in milliseconds since 1970, and their one spelling.

use pyo3::intern;
use pyo3::prelude::*;

use crate::unsure::{ensure, Answer};

const FIRST_MS: i64 = -30_610_224_000_000; // the year 1000: strftime pads no year before it
const LAST_MS: i64 = 253_402_300_799_999;

/// What Python's arithmetic with times needs at hand.
pub struct Clock {
    pub utc: Py<PyAny>,
    pub epoch: Py<PyAny>,
}

impl Clock {
    /// Return a datetime in whole milliseconds; unsure unless its zone is UTC itself.
    pub fn millis(&self, at: &Bound<'_, PyAny>) -> Answer<i64> {
        let py = at.py();
        ensure(at.getattr(intern!(py, "tzinfo"))?.is(&self.utc))?;
        let since = at.sub(self.epoch.bind(py))?;
        let days: i64 = since.getattr(intern!(py, "days"))?.extract()?;
        let seconds: i64 = since.getattr(intern!(py, "seconds"))?.extract()?;
        let micros: i64 = since.getattr(intern!(py, "microseconds"))?.extract()?;
        let millis = (days * 86_400 + seconds) * 1000 + micros / 1000;
        ensure((FIRST_MS..=LAST_MS).contains(&millis))?;
        Ok(millis)
    }
}

/// Append `millis` as text like 2026-05-16T12:34:56.789Z.
pub fn write_utc(out: &mut Vec<u8>, millis: i64) {
    let days = millis.div_euclid(86_400_000);
    let in_day = millis.rem_euclid(86_400_000);
    let (year, month, day) = civil(days);
    put(out, year, 4);
    out.push(b'-');
    put(out, month, 2);
    out.push(b'-');
    put(out, day, 2);
    out.push(b'T');
    put(out, in_day / 3_600_000, 2);
    out.push(b':');
    put(out, in_day / 60_000 % 60, 2);
    out.push(b':');
    put(out, in_day / 1000 % 60, 2);
    out.push(b'.');
    put(out, in_day % 1000, 3);
    out.push(b'Z');
}

fn put(out: &mut Vec<u8>, number: i64, digits: u32) {
    for place in (0..digits).rev() {
        out.push(b'0' + (number / 10_i64.pow(place) % 10) as u8);
    }
}

/// The date of a day counted from 1970-01-01, by eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
