//! A sealed event as Postgres receives the composite type `noetl.new_event`, in binary.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyTuple};

const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const BIGINT: u32 = 20;
const INTEGER: u32 = 23;
const TEXT: u32 = 25;
/// The types of the columns, in the order of migration 0004.
pub const COLUMNS: [u32; 38] = [
    INTEGER, TEXT, BIGINT, BIGINT, TEXT, TEXT, BIGINT, BIGINT, TEXT, TEXT, TEXT, TEXT, TEXT,
    INTEGER, BIGINT, TEXT, BIGINT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, BIGINT, TEXT, TEXT,
    TEXT, TEXT, TEXT, TEXT, TEXT, BYTEA, BYTEA, BIGINT, BOOL, BOOL, BOOL,
];
/// Where the number of the batch stands: after the count of columns, a type and a length.
const BATCH_AT: usize = 12;

/// Where a value lies in the row.
pub type Place = std::ops::Range<usize>;

pub struct RowWriter {
    pub bytes: Vec<u8>,
}

impl RowWriter {
    /// Begin a row; its batch number is written when it is sent.
    pub fn new(size: usize) -> Self {
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&(COLUMNS.len() as u32).to_be_bytes());
        let mut row = RowWriter { bytes };
        row.integer(0);
        row
    }

    fn value(&mut self, kind: u32, data: &[u8]) -> Place {
        self.bytes.extend_from_slice(&kind.to_be_bytes());
        self.bytes
            .extend_from_slice(&(data.len() as u32).to_be_bytes());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(data);
        start..self.bytes.len()
    }

    fn null(&mut self, kind: u32) {
        self.bytes.extend_from_slice(&kind.to_be_bytes());
        self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    pub fn integer(&mut self, number: i32) {
        self.value(INTEGER, &number.to_be_bytes());
    }

    pub fn bigint(&mut self, number: i64) {
        self.value(BIGINT, &number.to_be_bytes());
    }

    pub fn maybe_bigint(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.bigint(number),
            None => self.null(BIGINT),
        }
    }

    pub fn text(&mut self, text: &[u8]) -> Place {
        self.value(TEXT, text)
    }

    pub fn maybe_text(&mut self, text: Option<&[u8]>) -> Option<Place> {
        if text.is_none() {
            self.null(TEXT);
        }
        text.map(|text| self.text(text))
    }

    pub fn bytea(&mut self, data: &[u8]) -> Place {
        self.value(BYTEA, data)
    }

    pub fn flag(&mut self, flag: bool) {
        self.value(BOOL, &[u8::from(flag)]);
    }

    /// Append a value of Python's, as the column of type `kind` wants it.
    fn any(&mut self, kind: u32, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if value.is_none() {
            self.null(kind);
            return Ok(());
        }
        match kind {
            BOOL => self.flag(value.cast::<PyBool>()?.is_true()),
            BYTEA => drop(self.bytea(value.cast::<PyBytes>()?.as_bytes())),
            BIGINT => self.bigint(value.extract()?),
            INTEGER => self.integer(value.extract()?),
            _ => drop(self.text(value.extract::<&str>()?.as_bytes())),
        }
        Ok(())
    }
}

/// Encode a row that Python made (`streams.log.rows.new_event_row`).
pub fn encode(row: &Bound<'_, PyTuple>) -> PyResult<Vec<u8>> {
    if row.len() != COLUMNS.len() {
        return Err(PyValueError::new_err(
            "the row has not the columns of noetl.new_event",
        ));
    }
    let mut out = RowWriter {
        bytes: Vec::with_capacity(2048),
    };
    out.bytes
        .extend_from_slice(&(COLUMNS.len() as u32).to_be_bytes());
    for (kind, value) in COLUMNS.iter().zip(row.iter()) {
        out.any(*kind, &value)?;
    }
    Ok(out.bytes)
}

/// Append a row to an array that is being sent, as one of batch `batch`.
pub fn push(out: &mut Vec<u8>, row: &[u8], batch: i32) {
    out.extend_from_slice(&(row.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend_from_slice(row);
    out[start + BATCH_AT..start + BATCH_AT + 4].copy_from_slice(&batch.to_be_bytes());
}

/// Begin an array of `count` rows whose type has the id `element`.
pub fn begin(out: &mut Vec<u8>, element: u32, count: u32) {
    for word in [1, 0, element, count, 1] {
        out.extend_from_slice(&word.to_be_bytes());
    }
}
