//! Digest of the content of an Arrow schema, independent of Arrow's encoding (streams/payload/arrow/rows.py).

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use serde_json::{json, Value};

use crate::error::{Error, Result};
use crate::hash::sha256_hex;
use crate::json::canonical;

pub fn schema_digest(schema: &Schema) -> Result<String> {
    let fields =
        schema.fields().iter().map(|field| described(field)).collect::<Result<Vec<_>>>()?;
    let shape = schema.metadata().get("noetl.rows");
    let shape = shape.ok_or_else(|| Error::new("the schema does not say the shape of its rows"))?;
    Ok(sha256_hex(&canonical(&json!([fields, shape]))))
}

fn described(field: &Field) -> Result<Value> {
    let mut marks: Vec<_> = field.metadata().iter().collect();
    marks.sort();
    let mut described =
        vec![json!(field.name()), json!(type_text(field.data_type())?), json!(marks)];
    let inner = children(field.data_type());
    if !inner.is_empty() {
        let inner = inner.into_iter().map(described_child).collect::<Result<Vec<_>>>()?;
        described.push(Value::Array(inner));
    }
    Ok(Value::Array(described))
}

fn described_child(field: &Field) -> Result<Value> {
    described(field)
}

fn children(kind: &DataType) -> Vec<&Field> {
    match kind {
        DataType::Struct(fields) => fields.iter().map(|field| field.as_ref()).collect(),
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            vec![field.as_ref()]
        }
        _ => vec![],
    }
}

/// The name of a type, as Arrow's C++ library writes it.
fn type_text(kind: &DataType) -> Result<String> {
    Ok(match kind {
        DataType::Null => "null".into(),
        DataType::Boolean => "bool".into(),
        DataType::Int8 => "int8".into(),
        DataType::Int16 => "int16".into(),
        DataType::Int32 => "int32".into(),
        DataType::Int64 => "int64".into(),
        DataType::Float64 => "double".into(),
        DataType::Utf8 => "string".into(),
        DataType::LargeUtf8 => "large_string".into(),
        DataType::Date32 => "date32[day]".into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) => {
            format!("timestamp[us, tz={zone}]")
        }
        DataType::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        DataType::Struct(fields) => {
            let inner = fields.iter().map(|field| child_text(field)).collect::<Result<Vec<_>>>()?;
            format!("struct<{}>", inner.join(", "))
        }
        DataType::List(field) => format!("list<{}>", child_text(field)?),
        DataType::LargeList(field) => format!("large_list<{}>", child_text(field)?),
        DataType::Map(entries, _) => map_text(entries)?,
        other => {
            return Err(Error(format!("a column of {other} is not read; write plain columns")))
        }
    })
}

fn child_text(field: &Field) -> Result<String> {
    let not_null = if field.is_nullable() { "" } else { " not null" };
    Ok(format!("{}: {}{not_null}", field.name(), type_text(field.data_type())?))
}

fn map_text(entries: &Field) -> Result<String> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Error::new("a map whose entries are not keys and values"));
    };
    let (key, item) = (type_text(fields[0].data_type())?, type_text(fields[1].data_type())?);
    Ok(format!("map<{key}, {item}>"))
}
