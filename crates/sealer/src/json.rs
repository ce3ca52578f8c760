//! JSON as orjson writes it with sorted keys. The spelling of floats is left to orjson itself.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::unsure::{ensure, Answer, Unsure};

/// Deeper is not wrong, only left to the reference.
const MAX_DEPTH: usize = 100;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Append `text` with its quotes.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    // Without a way out of the loop, many bytes are looked at in one step.
    let is_plain = bytes.iter().fold(true, |plain, &byte| {
        plain & (byte >= 0x20) & (byte != b'"') & (byte != b'\\')
    });
    if is_plain {
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[start..at]);
        start = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

/// Append a whole number.
pub fn write_number(out: &mut Vec<u8>, number: i128) {
    let mut digits = [0u8; 40];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs() as u64;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

/// Append user data; unsure about subclasses, lone surrogates and everything refused.
///
/// `dumps` is orjson's, which is asked how a float is spelled.
pub fn write_value(
    out: &mut Vec<u8>,
    value: &Bound<'_, PyAny>,
    dumps: &Bound<'_, PyAny>,
    depth: usize,
) -> Answer<()> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        let text = text.to_str().map_err(|_| Unsure)?;
        if text.as_bytes().contains(&0) {
            return Err(Unsure);
        }
        write_text(out, text);
    } else if let Ok(number) = value.cast_exact::<PyInt>() {
        write_number(out, whole(number)?);
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        out.extend_from_slice(if flag.is_true() { b"true" } else { b"false" });
    } else if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(float) = value.cast_exact::<PyFloat>() {
        ensure(float.value().is_finite())?;
        out.extend_from_slice(
            dumps
                .call1((float,))?
                .cast_exact::<PyBytes>()
                .map_err(|_| Unsure)?
                .as_bytes(),
        );
    } else if depth >= MAX_DEPTH {
        return Err(Unsure);
    } else if let Ok(map) = value.cast_exact::<PyDict>() {
        write_object(out, map, dumps, depth)?;
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        out.push(b'[');
        for (number, inner) in list.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            write_value(out, &inner, dumps, depth + 1)?;
        }
        out.push(b']');
    } else {
        return Err(Unsure);
    }
    Ok(())
}

fn write_object(
    out: &mut Vec<u8>,
    map: &Bound<'_, PyDict>,
    dumps: &Bound<'_, PyAny>,
    depth: usize,
) -> Answer<()> {
    let pairs: Vec<_> = map.iter().collect();
    let mut sorted = Vec::with_capacity(pairs.len());
    for (key, inner) in &pairs {
        let key = key.cast_exact::<PyString>().map_err(|_| Unsure)?;
        let key = key.to_str().map_err(|_| Unsure)?;
        if key.as_bytes().contains(&0) {
            return Err(Unsure);
        }
        sorted.push((key, inner));
    }
    sorted.sort_unstable_by_key(|(key, _)| *key);
    out.push(b'{');
    for (number, (key, inner)) in sorted.into_iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_text(out, key);
        out.push(b':');
        write_value(out, inner, dumps, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn whole(number: &Bound<'_, PyInt>) -> Answer<i128> {
    if let Ok(small) = number.extract::<i64>() {
        return Ok(i128::from(small));
    }
    number.extract::<u64>().map(i128::from).map_err(|_| Unsure)
}
