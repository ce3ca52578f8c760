//! The envelope's hot paths. Everything here has its reference in Python
//! (streams/events), which also decides whatever this code is not sure about.

mod avro;
mod canonical;
mod events;
mod json;
mod kind;
mod payload;
mod read;
mod record;
mod row;
mod sealed;
mod sealer;
mod text;
mod time;
mod unsure;
mod verify;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// Raised when the Python side would no longer understand an older module, or it us, or when an
/// older one would seal what the rules refuse.
const INTERFACE: u32 = 6;

/// Return the array of rows that `noetl.append` takes, in binary.
///
/// A batch is a list of sealed events; `row_of` makes a row of values of one that Python sealed.
/// `element` is the id that this database gave the type `noetl.new_event`.
#[pyfunction]
fn rows<'py>(
    py: Python<'py>,
    batches: &Bound<'py, PyList>,
    element: u32,
    row_of: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut count = 0;
    let mut body = Vec::with_capacity(64 * 1024);
    row::begin(&mut body, element, 0);
    for (number, batch) in batches.iter().enumerate() {
        for event in batch.cast::<PyList>()?.iter() {
            if let Ok(sealed) = event.cast_exact::<sealed::Sealed>() {
                row::push(&mut body, &sealed.get().row, number as i32);
            } else {
                let values = row_of.call1((event, number))?;
                row::push(
                    &mut body,
                    &row::encode(values.cast::<PyTuple>()?)?,
                    number as i32,
                );
            }
            count += 1;
        }
    }
    let mut head = Vec::with_capacity(20);
    row::begin(&mut head, element, count);
    body[..head.len()].copy_from_slice(&head);
    Ok(PyBytes::new(py, &body))
}

/// Return the fields of an envelope whose Avro follows the header in `data`.
#[pyfunction(name = "record")]
fn read_record<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    record::read(py, data.get(record::HEADER..).unwrap_or_default())
}

/// Return for each envelope whether it surely matches its checksum; other threads run meanwhile.
#[pyfunction]
fn match_checksums(py: Python<'_>, envelopes: Vec<PyBackedBytes>) -> Vec<bool> {
    py.detach(|| envelopes.iter().map(|one| verify::matches(one)).collect())
}

#[pymodule]
fn streams_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("SHAPE", record::SHAPE)?;
    module.add("COLUMNS", row::COLUMNS.to_vec())?;
    module.add_class::<sealer::Sealer>()?;
    module.add_class::<sealed::Sealed>()?;
    module.add_class::<events::EventReader>()?;
    module.add_function(wrap_pyfunction!(rows, module)?)?;
    module.add_function(wrap_pyfunction!(read_record, module)?)?;
    module.add_function(wrap_pyfunction!(match_checksums, module)?)?;
    Ok(())
}
