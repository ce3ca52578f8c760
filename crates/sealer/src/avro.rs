//! Avro's bytes of the envelope, written and read.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub fn write_long(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest > 0x7f {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

pub fn write_bytes(out: &mut Vec<u8>, data: &[u8]) {
    write_long(out, data.len() as i64);
    out.extend_from_slice(data);
}

pub fn write_maybe_long(out: &mut Vec<u8>, number: Option<i64>) {
    match number {
        None => out.push(0),
        Some(number) => {
            out.push(2);
            write_long(out, number);
        }
    }
}

pub fn write_maybe_bytes(out: &mut Vec<u8>, data: Option<&[u8]>) {
    match data {
        None => out.push(0),
        Some(data) => {
            out.push(2);
            write_bytes(out, data);
        }
    }
}

/// Reads what the functions above write.
pub struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Reader { data, at: 0 }
    }

    pub fn rest(&self) -> usize {
        self.data.len() - self.at
    }

    fn byte(&mut self) -> PyResult<u8> {
        let byte = *self
            .data
            .get(self.at)
            .ok_or_else(|| bad("ends too early"))?;
        self.at += 1;
        Ok(byte)
    }

    pub fn long(&mut self) -> PyResult<i64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            if shift > 63 || (shift == 63 && byte > 1) {
                return Err(bad("holds a number that does not fit 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
            shift += 7;
        }
    }

    pub fn text(&mut self) -> PyResult<&'a str> {
        let size = usize::try_from(self.long()?).map_err(|_| bad("holds a negative length"))?;
        if size > self.rest() {
            return Err(bad("ends too early"));
        }
        let found = &self.data[self.at..self.at + size];
        self.at += size;
        std::str::from_utf8(found).map_err(|_| bad("holds text that is not UTF-8"))
    }

    /// Say whether an optional value is there.
    pub fn present(&mut self) -> PyResult<bool> {
        match self.long()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(bad("names a branch its union does not have")),
        }
    }
}

fn bad(why: &str) -> PyErr {
    PyValueError::new_err(format!("the envelope {why}"))
}
