//! Comparison of what was found with what a corpus expects.

use serde_json::Value;

use crate::corpus::{Corpus, Log};
use crate::error::{Error, Result};
use crate::events::model::PayloadRef;
use crate::fold::{Folder, Found};
use crate::locator::payload_uri;

/// How much was compared.
#[derive(Default)]
pub struct Compared {
    pub events: usize,
    pub payloads: usize,
}

/// Compare a whole corpus; the error is of the first event that differs.
pub fn check(corpus: &Corpus, folder: &Folder) -> Result<Compared> {
    let mut compared = Compared::default();
    for (key, expected) in &corpus.payloads {
        check_payload(folder, key, expected).map_err(|why| why.of(format!("payloads/{key}")))?;
        compared.payloads += 1;
    }
    for log in &corpus.logs {
        check_log(corpus, folder, log, &mut compared)?;
    }
    Ok(compared)
}

/// Compare a payload with its description; events may refer to it from inside a result only.
fn check_payload(folder: &Folder, key: &str, expected: &Value) -> Result<()> {
    let text = |name: &str| expected[name].as_str().map(str::to_owned);
    let reference = PayloadRef {
        uri: payload_uri(key)?,
        sha256: text("sha256").unwrap_or_default(),
        media_type: text("media_type").unwrap_or_default(),
        byte_length: expected["byte_length"].as_i64().unwrap_or(-1),
        row_count: expected["row_count"].as_i64(),
        schema_digest: text("schema_digest"),
        compression: None,
        ipc: None,
    };
    let rows = folder.objects.verify(&reference)?;
    same("rows", rows.as_ref().map(|one| one.digest.as_str()), &expected["rows"])
}

fn check_log(corpus: &Corpus, folder: &Folder, log: &Log, compared: &mut Compared) -> Result<()> {
    let mut expected = corpus.expected(log)?.into_iter();
    folder.fold(corpus, log, |found| {
        let name = format!("{}: {} seq {} ({})", log.name, found.root, found.seq, found.event_type);
        let expected = expected.next().unwrap_or_default();
        compare(&found, &expected).map_err(|why| why.of(&name))?;
        compared.events += 1;
        Ok(())
    })
}

fn compare(found: &Found, expected: &Value) -> Result<()> {
    same("root", Some(&found.root), &expected["root"])?;
    same("seq", Some(&found.seq.to_string()), &Value::String(expected["seq"].to_string()))?;
    same("event_id", Some(&found.event_id.to_string()), &expected["event_id"])?;
    same("body", Some(&found.body), &expected["body"])?;
    let Some(checksums) = &found.checksums else {
        return same("checksums", None, &expected["checksums"]);
    };
    for (projection, checksum) in checksums.named() {
        same(projection, Some(checksum), &expected["checksums"][projection])?;
    }
    same("payloads", Some(&found.payloads.digest), &expected["payloads"])
}

fn same(what: &str, found: Option<&str>, expected: &Value) -> Result<()> {
    if expected.as_str() == found {
        return Ok(());
    }
    let found = found.map_or_else(|| "nothing".to_owned(), |text| format!("{text:?}"));
    Err(Error(format!("{what} is {found}, expected {expected}")))
}
