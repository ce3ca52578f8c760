//! Rows of JSON as an Arrow stream, for regions: columns of integers, fractions, texts and truths.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema};
use serde_json::Value;

use crate::error::{Error, Result};

/// The stream of rows that are objects with the same keys.
pub fn encode(rows: &Value) -> Result<Vec<u8>> {
    let rows = rows.as_array().ok_or_else(|| Error::new("the rows are not a JSON list"))?;
    let first = rows.first().and_then(Value::as_object).filter(|one| !one.is_empty());
    let first = first.ok_or_else(|| Error::new("the first row is not an object with keys"))?;
    let is_alike = |row: &Value| row.as_object().is_some_and(|one| one.len() == first.len());
    if !rows.iter().all(is_alike) {
        return Err(Error::new("every row must be an object with the same keys"));
    }
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for name in first.keys() {
        let values = rows.iter().map(|row| row.get(name)).collect::<Option<Vec<_>>>();
        let values = values.ok_or_else(|| Error(format!("a row has no key {name:?}")))?;
        let (array, marks) = column(&values).map_err(|why| why.of(name))?;
        fields.push(Field::new(name, array.data_type().clone(), true).with_metadata(marks));
        arrays.push(array);
    }
    let shape = HashMap::from([("noetl.rows".to_owned(), "objects".to_owned())]);
    written(Schema::new_with_metadata(fields, shape), arrays)
        .map_err(|why| Error(format!("Arrow: {why}")))
}

fn written(schema: Schema, arrays: Vec<ArrayRef>) -> std::result::Result<Vec<u8>, ArrowError> {
    let schema = Arc::new(schema);
    let mut out = Vec::new();
    let mut writer = StreamWriter::try_new(&mut out, &schema)?;
    writer.write(&RecordBatch::try_new(schema.clone(), arrays)?)?;
    writer.finish()?;
    drop(writer);
    Ok(out)
}

fn column(values: &[&Value]) -> Result<(ArrayRef, HashMap<String, String>)> {
    let present = || values.iter().filter(|one| !one.is_null());
    let mut marks = HashMap::new();
    let array: ArrayRef = if present().all(|one| one.is_string()) {
        Arc::new(StringArray::from_iter(values.iter().map(|one| one.as_str())))
    } else if present().all(|one| one.is_boolean()) {
        Arc::new(BooleanArray::from_iter(values.iter().map(|one| one.as_bool())))
    } else if present().all(|one| one.is_i64()) {
        Arc::new(Int64Array::from_iter(values.iter().map(|one| one.as_i64())))
    } else if present().all(|one| one.is_number()) {
        if present().any(|one| one.is_i64()) {
            marks.insert("noetl.number".to_owned(), "json".to_owned());
        }
        Arc::new(Float64Array::from_iter(values.iter().map(|one| one.as_f64())))
    } else {
        return Err(Error::new(
            "a column has values of one kind: integers, numbers, texts or truths",
        ));
    };
    Ok((array, marks))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hash::blake3_hex;
    use crate::payload::arrow_rows::read_rows;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let data =
            encode(&json!([{"n": 1, "f": 1.5, "t": "a"}, {"n": null, "f": 2, "t": "b"}])).unwrap();
        let found = read_rows(&data).unwrap();
        let text = "{\"f\":1.5,\"n\":1,\"t\":\"a\"}\n{\"f\":2,\"n\":null,\"t\":\"b\"}\n";
        assert_eq!((found.count, found.digest), (2, blake3_hex(text.as_bytes())));
    }

    #[test]
    fn rows_of_other_shapes_are_refused() {
        for rows in [
            json!({}),
            json!([]),
            json!([1]),
            json!([{"a": 1}, {"b": 1}]),
            json!([{"a": 1}, {"a": "x"}]),
        ] {
            assert!(encode(&rows).is_err());
        }
    }
}
