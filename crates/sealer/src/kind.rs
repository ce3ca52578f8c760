//! What the catalogue says about an event type, and whether routing values keep it.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use crate::json::{write_number, write_text};
use crate::text::{is_digest, is_id, is_plain, is_time, MAX_KEY_CHARS};
use crate::unsure::{ensure, Answer, Unsure};

pub const MAX_SAFE_INT: i64 = (1 << 53) - 1;

#[derive(FromPyObject)]
pub struct MetaField {
    name: String,
    kind: String,
    required: bool,
    choices: Vec<String>,
}

/// An `EventType`, with what its root says about where its entity is found.
pub struct Kind {
    pub value: Py<PyAny>,
    pub name: String,
    pub root: String,
    pub entity: String,
    pub found_by: Option<String>,
    pub schema_name: String,
    pub version: i32,
    pub columns: Vec<String>,
    pub user_data: Vec<String>,
    pub payload: String,
    pub claim: Option<String>,
    pub ends: bool,
    pub reopens: bool,
    pub after_end: bool,
    meta: Vec<MetaField>,
    required: usize,
}

impl Kind {
    /// Read an `EventType`; `found_by` is what `RootType.entities` says of its entity.
    pub fn read(value: &Bound<'_, PyAny>, found_by: Option<String>) -> PyResult<Self> {
        let fields = value.getattr("meta")?.call_method0("values")?;
        let meta = fields
            .try_iter()?
            .map(|field| field?.extract())
            .collect::<PyResult<Vec<MetaField>>>()?;
        Ok(Kind {
            value: value.clone().unbind(),
            name: value.getattr("name")?.extract()?,
            root: value.getattr("root")?.extract()?,
            entity: value.getattr("entity")?.extract()?,
            found_by,
            schema_name: value.getattr("schema_name")?.extract()?,
            version: value.getattr("version")?.extract()?,
            columns: value.getattr("columns")?.extract()?,
            user_data: value.getattr("user_data")?.extract()?,
            payload: value.getattr("payload")?.extract()?,
            claim: value.getattr("claim")?.extract()?,
            ends: value.getattr("ends")?.extract()?,
            reopens: value.getattr("reopens")?.extract()?,
            after_end: value.getattr("after_end")?.extract()?,
            required: meta.iter().filter(|field| field.required).count(),
            meta,
        })
    }

    pub fn requires(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }

    pub fn carries(&self, field: &str) -> bool {
        self.user_data.iter().any(|name| name == field)
    }

    /// Check `meta` and append its canonical JSON.
    pub fn write_meta(&self, out: &mut Vec<u8>, meta: &Bound<'_, PyDict>) -> Answer<()> {
        let pairs: Vec<_> = meta.iter().collect();
        let mut sorted = Vec::with_capacity(pairs.len());
        let mut required = 0;
        for (name, value) in &pairs {
            let name = name
                .cast_exact::<PyString>()
                .map_err(|_| Unsure)?
                .to_str()?;
            let field = self
                .meta
                .iter()
                .find(|field| field.name == name)
                .ok_or(Unsure)?;
            required += usize::from(field.required);
            sorted.push((name, field, value));
        }
        ensure(required == self.required)?;
        sorted.sort_unstable_by_key(|(name, _, _)| *name);
        out.push(b'{');
        for (number, (name, field, value)) in sorted.into_iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            write_text(out, name);
            out.push(b':');
            field.write(out, value)?;
        }
        out.push(b'}');
        Ok(())
    }
}

impl MetaField {
    fn write(&self, out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> Answer<()> {
        match self.kind.as_str() {
            "int" => {
                let number: i64 = value.cast_exact::<PyInt>().map_err(|_| Unsure)?.extract()?;
                ensure((-MAX_SAFE_INT..=MAX_SAFE_INT).contains(&number))?;
                write_number(out, number.into());
            }
            "bool" => {
                let flag = value.cast_exact::<PyBool>().map_err(|_| Unsure)?.is_true();
                out.extend_from_slice(if flag { b"true" } else { b"false" });
            }
            kind => {
                let text = value
                    .cast_exact::<PyString>()
                    .map_err(|_| Unsure)?
                    .to_str()?;
                ensure(match kind {
                    "choice" => self.choices.iter().any(|choice| choice == text),
                    "id" => is_id(text),
                    "digest" => is_digest(text),
                    "time" => is_time(text),
                    "text" => is_plain(text, MAX_KEY_CHARS),
                    _ => false,
                })?;
                write_text(out, text);
            }
        }
        Ok(())
    }
}
