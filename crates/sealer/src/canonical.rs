//! The two canonical JSON texts of an envelope: of all of it, and of what it means.

use crate::json::{write_number, write_text};
use crate::time::write_utc;

/// Fields must come in the order of their names; the first must be one that means something.
pub struct Canonical {
    pub full: Vec<u8>,
    pub semantic: Vec<u8>,
}

impl Canonical {
    pub fn new() -> Self {
        Canonical {
            full: Vec::with_capacity(2048),
            semantic: Vec::with_capacity(2048),
        }
    }

    fn name(&mut self, name: &str) -> usize {
        let start = self.full.len();
        self.full.push(if start == 0 { b'{' } else { b',' });
        self.full.push(b'"');
        self.full.extend_from_slice(name.as_bytes());
        self.full.extend_from_slice(b"\":");
        start
    }

    fn means(&mut self, start: usize) {
        self.semantic.extend_from_slice(&self.full[start..]);
    }

    pub fn text(&mut self, name: &str, text: &str) {
        let start = self.name(name);
        write_text(&mut self.full, text);
        self.means(start);
    }

    pub fn maybe_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    pub fn number(&mut self, name: &str, number: i64) {
        let start = self.name(name);
        write_number(&mut self.full, number.into());
        self.means(start);
    }

    pub fn maybe_number(&mut self, name: &str, number: Option<i64>) {
        if let Some(number) = number {
            self.number(name, number);
        }
    }

    /// A 64-bit id, which is text in JSON.
    pub fn maybe_id(&mut self, name: &str, id: Option<i64>) {
        if let Some(id) = id {
            let start = self.name(name);
            self.quoted(id);
            self.means(start);
        }
    }

    pub fn raw(&mut self, name: &str, json: &[u8]) {
        self.raw_pair(name, json, json);
    }

    /// A field one part of which means nothing: `json` is all of it, `meant` the rest.
    pub fn raw_pair(&mut self, name: &str, json: &[u8], meant: &[u8]) {
        let start = self.name(name);
        self.means(start);
        self.full.extend_from_slice(json);
        self.semantic.extend_from_slice(meant);
    }

    /// What may differ between two tellings of the same fact.
    pub fn aside_text(&mut self, name: &str, text: &str) {
        self.name(name);
        write_text(&mut self.full, text);
    }

    pub fn aside_id(&mut self, name: &str, id: i64) {
        self.name(name);
        self.quoted(id);
    }

    pub fn aside_time(&mut self, name: &str, millis: i64) {
        self.name(name);
        self.full.push(b'"');
        write_utc(&mut self.full, millis);
        self.full.push(b'"');
    }

    pub fn end(&mut self) {
        self.full.push(b'}');
        self.semantic.push(b'}');
    }

    fn quoted(&mut self, id: i64) {
        self.full.push(b'"');
        write_number(&mut self.full, id.into());
        self.full.push(b'"');
    }
}
