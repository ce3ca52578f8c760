//! The files of a corpus: sealed events as the log has them, and what is expected of them (docs/golden-corpus.md).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::events::model::Assigned;
use crate::json::{parse, Object};
use crate::time;

/// The version of the files' format that this program reads.
const FORMAT: i64 = 1;

pub struct Corpus {
    pub folder: PathBuf,
    pub logs: Vec<Log>,
    /// What is expected of each payload, by its key.
    pub payloads: Object,
}

pub struct Log {
    pub name: String,
    /// Whether its roots are whole executions, which can be folded.
    pub is_folded: bool,
    pub events: i64,
}

/// An event as it lies in the log.
pub struct Stored {
    pub root: String,
    pub assigned: Assigned,
    pub checksum: String,
    pub chain: String,
    pub envelope: Vec<u8>,
}

impl Corpus {
    pub fn open(folder: &Path) -> Result<Self> {
        let manifest = document(&folder.join("manifest.json"))?;
        if manifest["format"] != FORMAT {
            return Err(Error(format!(
                "the corpus has format {}, this program reads {FORMAT}",
                manifest["format"]
            )));
        }
        let logs = manifest["logs"].as_array().into_iter().flatten().map(|one| {
            Ok(Log {
                name: text(one, "name")?,
                is_folded: one["folded"] == true,
                events: number(one, "events")?,
            })
        });
        let logs = logs.collect::<Result<_>>()?;
        let payloads = document(&folder.join("payloads.json"))?;
        let payloads = payloads.as_object().cloned().unwrap_or_default();
        Ok(Corpus { folder: folder.to_owned(), logs, payloads })
    }

    pub fn stored(&self, log: &Log) -> Result<Vec<Stored>> {
        let lines = self.lines("logs", log)?;
        lines
            .iter()
            .enumerate()
            .map(|(index, one)| {
                stored(one).map_err(|why| why.of(format!("logs/{}, line {}", log.name, index + 1)))
            })
            .collect()
    }

    pub fn expected(&self, log: &Log) -> Result<Vec<Value>> {
        self.lines("expected", log)
    }

    fn lines(&self, folder: &str, log: &Log) -> Result<Vec<Value>> {
        let path = self.folder.join(folder).join(format!("{}.jsonl.gz", log.name));
        let of = |why: &dyn std::fmt::Display| Error(format!("{}: {why}", path.display()));
        let file = File::open(&path).map_err(|why| of(&why))?;
        let mut found = Vec::new();
        for line in BufReader::new(MultiGzDecoder::new(file)).lines() {
            found.push(parse(&line.map_err(|why| of(&why))?).map_err(|why| of(&why))?);
        }
        if found.len() as i64 != log.events {
            return Err(of(&format!("{} events, the manifest says {}", found.len(), log.events)));
        }
        Ok(found)
    }
}

fn stored(one: &Value) -> Result<Stored> {
    let envelope = BASE64_STANDARD.decode(text(one, "envelope")?);
    Ok(Stored {
        root: text(one, "root")?,
        assigned: Assigned {
            seq: number(one, "seq")?,
            position: number(one, "position")?,
            stream_version: number(one, "stream_version")?,
            ingest_time: time::parse(&text(one, "ingest_time")?)?,
        },
        checksum: text(one, "checksum")?,
        chain: text(one, "chain")?,
        envelope: envelope.map_err(|why| Error(format!("the envelope is not base64: {why}")))?,
    })
}

fn document(path: &Path) -> Result<Value> {
    let text =
        std::fs::read_to_string(path).map_err(|why| Error(format!("{}: {why}", path.display())))?;
    parse(&text).map_err(|why| why.of(path.display()))
}

fn text(value: &Value, name: &str) -> Result<String> {
    value[name].as_str().map(str::to_owned).ok_or_else(|| Error(format!("{name} is missing")))
}

fn number(value: &Value, name: &str) -> Result<i64> {
    value[name].as_i64().ok_or_else(|| Error(format!("{name} is missing")))
}
