//! The envelope: Confluent's header, Avro, canonical JSON and its checksum (streams/events/codec.py, canonical.py).

use apache_avro::types::Value as Avro;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::events::model::{Assigned, Event, IpcHint, PayloadRef};
use crate::events::schemas::Schemas;
use crate::hash::blake3_hex;
use crate::json::{canonical, parse, Object};
use crate::time::envelope_text;

/// Fields that are numbers in Avro and text in JSON.
const IDS: [&str; 6] =
    ["event_id", "root_id", "execution_id", "parent_execution_id", "catalog_id", "causation_id"];

/// A decoded envelope: its fields by name, absent ones left out.
pub struct Envelope {
    fields: Object,
}

impl Envelope {
    pub fn decode(data: &[u8], schemas: &Schemas) -> Result<Self> {
        let [0, a, b, c, d, body @ ..] = data else {
            return Err(Error::new(
                "no Confluent wire format: expected a zero byte and a schema id",
            ));
        };
        let id = u32::from_be_bytes([*a, *b, *c, *d]);
        let writer = schemas.writer(id)?;
        let mut rest = body;
        let found = apache_avro::from_avro_datum(&writer, &mut rest, Some(&schemas.reader))
            .map_err(|why| Error(format!("Avro of schema {id} does not decode: {why}")))?;
        if !rest.is_empty() {
            return Err(Error(format!("{} bytes follow the Avro of schema {id}", rest.len())));
        }
        match json_of(found)? {
            Value::Object(fields) => Ok(Envelope { fields }),
            _ => Err(Error(format!("schema {id} is not a record"))),
        }
    }

    /// The checksum that its writer computed.
    pub fn checksum(&self) -> &str {
        self.fields.get("checksum").and_then(Value::as_str).unwrap_or("")
    }

    /// The checksum that its fields have.
    pub fn computed_checksum(&self) -> Result<String> {
        Ok(blake3_hex(&canonical(&Value::Object(self.canonical_fields()?))))
    }

    fn canonical_fields(&self) -> Result<Object> {
        let mut fields = self.fields.clone();
        fields.shift_remove("checksum");
        for name in IDS {
            if let Some(id) = fields.get_mut(name) {
                *id = Value::String(id.to_string());
            }
        }
        let at = self.number("event_time")?;
        fields.insert("event_time".into(), Value::String(envelope_text(at)));
        fields.insert("meta".into(), parse(&self.text("meta")?)?);
        if let Some(hint) = fields.get_mut("payload_ref").and_then(|one| one.get_mut("ipc")) {
            let until = hint["valid_until"].as_i64().unwrap_or(0);
            hint["valid_until"] = Value::String(envelope_text(until));
        }
        Ok(fields)
    }

    pub fn event(&self, assigned: Assigned) -> Result<Event> {
        let Value::Object(meta) = parse(&self.text("meta")?)? else {
            return Err(Error::new("meta is not a JSON object"));
        };
        Ok(Event {
            event_id: self.number("event_id")?,
            root_type: self.text("root_type")?,
            root_id: self.number("root_id")?,
            tenant_id: self.text("tenant_id")?,
            organization_id: self.text("organization_id")?,
            event_type: self.text("event_type")?,
            schema_name: self.text("schema_name")?,
            schema_version: self.number("schema_version")? as i32,
            causation_id: self.fields.get("causation_id").and_then(Value::as_i64),
            parent_execution_id: self.fields.get("parent_execution_id").and_then(Value::as_i64),
            catalog_id: self.fields.get("catalog_id").and_then(Value::as_i64),
            node_name: self.maybe("node_name"),
            status: self.maybe("status"),
            error: self.maybe("error"),
            current_item: self.document("current_item")?,
            meta,
            context: self.document("context")?,
            result: self.document("result")?,
            payload_ref: self.fields.get("payload_ref").map(reference).transpose()?,
            assigned,
        })
    }

    fn text(&self, name: &str) -> Result<String> {
        self.maybe(name).ok_or_else(|| Error(format!("the envelope has no {name}")))
    }

    fn maybe(&self, name: &str) -> Option<String> {
        self.fields.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    fn number(&self, name: &str) -> Result<i64> {
        let found = self.fields.get(name).and_then(Value::as_i64);
        found.ok_or_else(|| Error(format!("the envelope has no {name}")))
    }

    fn document(&self, name: &str) -> Result<Value> {
        self.maybe(name).map_or(Ok(Value::Null), |text| parse(&text).map_err(|why| why.of(name)))
    }
}

fn reference(value: &Value) -> Result<PayloadRef> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| value.get(name).and_then(Value::as_i64);
    let missing = || Error::new("a payload reference is incomplete");
    let hint = value.get("ipc").map(|hint| {
        let text = |name: &str| hint[name].as_str().unwrap_or("").to_owned();
        IpcHint {
            node_id: text("node_id"),
            shm_name: text("shm_name"),
            schema_digest: text("schema_digest"),
            valid_until: hint["valid_until"].as_i64().unwrap_or(0),
        }
    });
    Ok(PayloadRef {
        uri: text("uri").ok_or_else(missing)?,
        sha256: text("sha256").ok_or_else(missing)?,
        media_type: text("media_type").ok_or_else(missing)?,
        byte_length: number("byte_length").ok_or_else(missing)?,
        row_count: number("row_count"),
        schema_digest: text("schema_digest"),
        compression: text("compression"),
        ipc: hint,
    })
}

/// Avro as JSON; fields that are null are left out.
fn json_of(value: Avro) -> Result<Value> {
    Ok(match value {
        Avro::Null => Value::Null,
        Avro::Boolean(is_true) => is_true.into(),
        Avro::Int(number) => number.into(),
        Avro::Long(number) | Avro::TimestampMillis(number) => number.into(),
        Avro::String(text) => text.into(),
        Avro::Union(_, inner) => json_of(*inner)?,
        Avro::Record(fields) => {
            let mut found = Object::new();
            for (name, inner) in fields {
                match json_of(inner)? {
                    Value::Null => {}
                    inner => drop(found.insert(name, inner)),
                }
            }
            Value::Object(found)
        }
        other => return Err(Error(format!("an envelope has no fields like {other:?}"))),
    })
}
