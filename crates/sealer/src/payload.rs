//! The reference to a payload: checked, in JSON, and in Avro.

use pyo3::intern;
use pyo3::prelude::*;

use crate::avro;
use crate::json::{write_number, write_text};
use crate::kind::MAX_SAFE_INT;
use crate::read::{maybe_int, maybe_text, text};
use crate::text::{is_digest, MAX_NAME_CHARS};
use crate::time::{write_utc, Clock};
use crate::unsure::{ensure, Answer, Unsure};

/// A reference that keeps the rules.
#[derive(Default)]
pub struct Reference {
    pub json: Vec<u8>,
    /// Without the hint, which means nothing.
    pub meant: Vec<u8>,
    pub avro: Vec<u8>,
}

/// Read a `PayloadRef` whose uri must be `prefix` and its digest.
pub fn read(reference: &Bound<'_, PyAny>, prefix: &str, clock: &Clock) -> Answer<Reference> {
    let py = reference.py();
    let get = |name| reference.getattr(name);
    let (uri, sha256) = (get(intern!(py, "uri"))?, get(intern!(py, "sha256"))?);
    let (uri, sha256) = (text(&uri, usize::MAX)?, text(&sha256, 64)?);
    ensure(is_digest(sha256) && uri.strip_prefix(prefix) == Some(sha256))?;
    let media_type = get(intern!(py, "media_type"))?;
    let schema_digest = get(intern!(py, "schema_digest"))?;
    let compression = get(intern!(py, "compression"))?;
    let media_type = text(&media_type, MAX_NAME_CHARS)?;
    let schema_digest = maybe_text(&schema_digest, MAX_NAME_CHARS)?;
    let compression = maybe_text(&compression, MAX_NAME_CHARS)?;
    let byte_length = maybe_int(&get(intern!(py, "byte_length"))?, 0, MAX_SAFE_INT)?;
    let byte_length = byte_length.ok_or(Unsure)?;
    let row_count = maybe_int(&get(intern!(py, "row_count"))?, 0, MAX_SAFE_INT)?;
    let hint = get(intern!(py, "ipc"))?;
    let hint = if hint.is_none() {
        None
    } else {
        Some(read_hint(&hint, clock)?)
    };

    let mut made = Reference::default();
    let mut json = Vec::with_capacity(512);
    json.extend_from_slice(b"{\"byte_length\":");
    write_number(&mut json, byte_length.into());
    text_field(&mut json, "compression", compression);
    let before_hint = json.len();
    if let Some(hint) = &hint {
        json.extend_from_slice(b",\"ipc\":");
        json.extend_from_slice(&hint.json);
    }
    let after_hint = json.len();
    text_field(&mut json, "media_type", Some(media_type));
    if let Some(count) = row_count {
        json.extend_from_slice(b",\"row_count\":");
        write_number(&mut json, count.into());
    }
    text_field(&mut json, "schema_digest", schema_digest);
    text_field(&mut json, "sha256", Some(sha256));
    text_field(&mut json, "uri", Some(uri));
    json.push(b'}');
    made.meant.reserve(json.len());
    made.meant.extend_from_slice(&json[..before_hint]);
    made.meant.extend_from_slice(&json[after_hint..]);
    made.json = json;

    let out = &mut made.avro;
    for text in [uri, sha256, media_type] {
        avro::write_bytes(out, text.as_bytes());
    }
    avro::write_long(out, byte_length);
    avro::write_maybe_long(out, row_count);
    avro::write_maybe_bytes(out, schema_digest.map(str::as_bytes));
    avro::write_maybe_bytes(out, compression.map(str::as_bytes));
    match hint {
        None => out.push(0),
        Some(hint) => {
            out.push(2);
            out.extend_from_slice(&hint.avro);
        }
    }
    Ok(made)
}

fn read_hint(hint: &Bound<'_, PyAny>, clock: &Clock) -> Answer<Reference> {
    let py = hint.py();
    let node_id = hint.getattr(intern!(py, "node_id"))?;
    let shm_name = hint.getattr(intern!(py, "shm_name"))?;
    let schema_digest = hint.getattr(intern!(py, "schema_digest"))?;
    let node_id = text(&node_id, MAX_NAME_CHARS)?;
    let shm_name = text(&shm_name, MAX_NAME_CHARS)?;
    let schema_digest = text(&schema_digest, MAX_NAME_CHARS)?;
    let valid_until = clock.millis(&hint.getattr(intern!(py, "valid_until"))?)?;

    let mut made = Reference::default();
    made.json.extend_from_slice(b"{\"node_id\":");
    write_text(&mut made.json, node_id);
    text_field(&mut made.json, "schema_digest", Some(schema_digest));
    text_field(&mut made.json, "shm_name", Some(shm_name));
    made.json.extend_from_slice(b",\"valid_until\":\"");
    write_utc(&mut made.json, valid_until);
    made.json.extend_from_slice(b"\"}");
    for text in [node_id, shm_name, schema_digest] {
        avro::write_bytes(&mut made.avro, text.as_bytes());
    }
    avro::write_long(&mut made.avro, valid_until);
    Ok(made)
}

fn text_field(out: &mut Vec<u8>, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        write_text(out, text);
    }
}
