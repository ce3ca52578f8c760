//! Payload objects in a folder, verified against their references (streams/payload/content.py).

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::events::model::PayloadRef;
use crate::hash::sha256_hex;
use crate::locator::payload_key;
use crate::payload::arrow_rows::{read_rows, Rows};
use crate::payload::blocks::unpack;

pub const ARROW: &str = "application/vnd.apache.arrow.stream";

pub struct Objects {
    folder: PathBuf,
}

impl Objects {
    pub fn new(folder: &Path) -> Self {
        Objects { folder: folder.to_owned() }
    }

    /// Read a payload and compare it with everything its reference says; return the rows of an Arrow stream.
    pub fn verify(&self, reference: &PayloadRef) -> Result<Option<Rows>> {
        self.verified(reference).map_err(|why| why.of(&reference.uri))
    }

    fn verified(&self, reference: &PayloadRef) -> Result<Option<Rows>> {
        let key = payload_key(&reference.uri, &reference.sha256)?;
        let stored = fs::read(self.folder.join(&key))
            .map_err(|why| Error(format!("the payload is missing: {why}")))?;
        let data = unpack(&stored)?;
        if data.len() as i64 != reference.byte_length {
            return Err(Error(format!(
                "the stored payload has {} bytes, not {}",
                data.len(),
                reference.byte_length
            )));
        }
        let digest = sha256_hex(&data);
        if digest != reference.sha256 {
            return Err(Error(format!("the stored payload has the digest {digest}")));
        }
        if reference.media_type != ARROW {
            return Ok(None);
        }
        let rows = read_rows(&data)?;
        if reference.row_count.is_some_and(|count| count != rows.count) {
            return Err(Error(format!(
                "the stream has {} rows, its reference says {:?}",
                rows.count, reference.row_count
            )));
        }
        if reference.schema_digest.as_ref().is_some_and(|digest| *digest != rows.schema_digest) {
            return Err(Error(format!(
                "the schema of the stream has the digest {}",
                rows.schema_digest
            )));
        }
        Ok(Some(rows))
    }
}
