//! Values of an event, as long as they are plainly right.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::text::is_plain;
use crate::unsure::{ensure, Answer, Unsure};

/// Plain text of 1 to `limit` characters.
pub fn text<'a>(value: &'a Bound<'_, PyAny>, limit: usize) -> Answer<&'a str> {
    let text = value
        .cast_exact::<PyString>()
        .map_err(|_| Unsure)?
        .to_str()?;
    ensure(is_plain(text, limit))?;
    Ok(text)
}

pub fn maybe_text<'a>(value: &'a Bound<'_, PyAny>, limit: usize) -> Answer<Option<&'a str>> {
    if value.is_none() {
        return Ok(None);
    }
    text(value, limit).map(Some)
}

/// A whole number from `least` to `most`; true and false are none.
pub fn maybe_int(value: &Bound<'_, PyAny>, least: i64, most: i64) -> Answer<Option<i64>> {
    if value.is_none() {
        return Ok(None);
    }
    let number: i64 = value.cast_exact::<PyInt>().map_err(|_| Unsure)?.extract()?;
    ensure((least..=most).contains(&number))?;
    Ok(Some(number))
}

pub fn id(value: &Bound<'_, PyAny>) -> Answer<i64> {
    maybe_int(value, 1, i64::MAX)?.ok_or(Unsure)
}

pub fn maybe_id(value: &Bound<'_, PyAny>) -> Answer<Option<i64>> {
    maybe_int(value, 1, i64::MAX)
}
