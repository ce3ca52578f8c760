//! Rows of Arrow streams as JSON, and their digest (streams/payload/arrow/rows.py, values.py).

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type, Int32Type, Int64Type, Int8Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Field};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::json::{canonical, parse, Object};
use crate::payload::arrow_schema::schema_digest;

/// The rows of a stream; `digest` is the BLAKE3 of their canonical JSON, each followed by a newline.
pub struct Rows {
    pub count: i64,
    pub schema_digest: String,
    pub digest: String,
}

/// A value of a column; `None` where the row does not have the key.
type Cell = Option<Value>;

pub fn read_rows(data: &[u8]) -> Result<Rows> {
    let not_arrow = |why: arrow_schema::ArrowError| Error(format!("not an Arrow stream: {why}"));
    let reader = StreamReader::try_new(data, None).map_err(not_arrow)?;
    let schema = reader.schema();
    let (mut count, mut hasher) = (0, blake3::Hasher::new());
    for batch in reader {
        for row in rows_of(&batch.map_err(not_arrow)?)? {
            hasher.update(&canonical(&row));
            hasher.update(b"\n");
            count += 1;
        }
    }
    let digest = hasher.finalize().to_hex().to_string();
    Ok(Rows { count, schema_digest: schema_digest(&schema)?, digest })
}

fn rows_of(batch: &RecordBatch) -> Result<Vec<Value>> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns =
        columns.map(|(field, column)| cells(field, column)).collect::<Result<Vec<_>>>()?;
    if schema.metadata().get("noetl.rows").is_some_and(|shape| shape == "values") {
        let values = columns.into_iter().next().unwrap_or_default();
        return Ok(values.into_iter().map(Option::unwrap_or_default).collect());
    }
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
    Ok(joined(&names, columns, batch.num_rows()))
}

/// Columns as objects, each without the keys that it does not have.
fn joined(names: &[String], columns: Vec<Vec<Cell>>, count: usize) -> Vec<Value> {
    let mut rows = vec![Object::new(); count];
    for (name, column) in names.iter().zip(columns) {
        for (row, cell) in rows.iter_mut().zip(column) {
            if let Some(value) = cell {
                row.insert(name.clone(), value);
            }
        }
    }
    rows.into_iter().map(Value::Object).collect()
}

fn cells(field: &Field, column: &dyn Array) -> Result<Vec<Cell>> {
    let marks = field.metadata();
    let is_missing = marks.get("noetl.null").is_some_and(|mark| mark == "missing");
    let absent = if is_missing { None } else { Some(Value::Null) };
    let is_text = marks.contains_key("noetl.encoding");
    let is_number = marks.contains_key("noetl.number");
    let cell = |index: usize| -> Result<Cell> {
        if column.is_null(index) || *column.data_type() == DataType::Null {
            return Ok(absent.clone());
        }
        let value = value(column, index)?;
        Ok(Some(match value {
            Value::String(text) if is_text => parse(&text)?,
            Value::Number(number) if is_number => whole(number.as_f64().unwrap_or(f64::NAN)),
            other => other,
        }))
    };
    (0..column.len()).map(cell).collect()
}

/// A number of a column that has integers and fractions.
fn whole(number: f64) -> Value {
    if number.is_finite() && number.fract() == 0.0 {
        (number as i64).into()
    } else {
        number.into()
    }
}

fn value(column: &dyn Array, index: usize) -> Result<Value> {
    Ok(match column.data_type() {
        DataType::Boolean => column.as_boolean().value(index).into(),
        DataType::Int8 => column.as_primitive::<Int8Type>().value(index).into(),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(index).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(index).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(index).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(index).into(),
        DataType::Utf8 => column.as_string::<i32>().value(index).into(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(index).into(),
        DataType::List(field) => list(field, &column.as_list::<i32>().value(index))?,
        DataType::LargeList(field) => list(field, &column.as_list::<i64>().value(index))?,
        DataType::Struct(fields) => {
            let row = column.as_struct().slice(index, 1);
            let inner = fields.iter().zip(row.columns());
            let inner = inner.map(|(field, one)| cells(field, one)).collect::<Result<Vec<_>>>()?;
            let names: Vec<_> = fields.iter().map(|field| field.name().clone()).collect();
            joined(&names, inner, 1).remove(0)
        }
        DataType::Map(_, _) => map(column, index)?,
        other => {
            return Err(Error(format!("a column of {other} is not read; write plain columns")))
        }
    })
}

fn list(field: &Field, items: &dyn Array) -> Result<Value> {
    Ok(Value::Array(cells(field, items)?.into_iter().map(Option::unwrap_or_default).collect()))
}

fn map(column: &dyn Array, index: usize) -> Result<Value> {
    let entries = column.as_map().value(index);
    let (keys, items) = (entries.column(0).as_string::<i32>(), entries.column(1));
    let items = cells(&entries.fields()[1], items)?;
    let pairs = keys
        .iter()
        .zip(items)
        .map(|(key, item)| (key.unwrap_or("").to_owned(), item.unwrap_or_default()));
    Ok(Value::Object(pairs.collect()))
}
