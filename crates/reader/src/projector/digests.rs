//! Checksums of rows and of an execution's whole state (streams/projector/digests.py).

use crate::hash::blake3_hex;
use crate::projector::rows::{Kind, Row, PROJECTION_VERSION};

/// Texts in order: how many, and their chained digest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowChain {
    pub length: i64,
    pub digest: String,
}

impl RowChain {
    pub fn add(&mut self, text: &[u8]) {
        self.digest = blake3_hex(&[self.digest.as_bytes(), text].concat());
        self.length += 1;
    }
}

/// The chains of the rows that have ended, of each kind.
#[derive(Debug, Clone, Default)]
pub struct EndedRows {
    pub stage: RowChain,
    pub frame: RowChain,
    pub command: RowChain,
    pub result_ref: RowChain,
}

impl EndedRows {
    pub fn add(&mut self, row: &Row) {
        let chain = match row.kind {
            Kind::Stage => &mut self.stage,
            Kind::Frame => &mut self.frame,
            Kind::Command => &mut self.command,
            Kind::ResultRef => &mut self.result_ref,
            Kind::Execution => return, // an execution's own row never ends
        };
        chain.add(&row.json);
    }
}

/// The checksum of each projection of an execution, and of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksums {
    pub execution: String,
    pub stage: String,
    pub frame: String,
    pub command: String,
    pub result_ref: String,
    pub all: String,
}

impl Checksums {
    pub fn named(&self) -> [(&'static str, &str); 6] {
        [
            ("execution", &self.execution),
            ("stage", &self.stage),
            ("frame", &self.frame),
            ("command", &self.command),
            ("result_ref", &self.result_ref),
            ("all", &self.all),
        ]
    }
}

pub fn state_checksums(execution: &Row, ended: &EndedRows, still_open: &[Row]) -> Checksums {
    let head = format!("[{PROJECTION_VERSION},");
    let execution = blake3_hex(&[head.as_bytes(), &execution.json, b"]"].concat());
    let stage = part(&ended.stage, Kind::Stage, still_open);
    let frame = part(&ended.frame, Kind::Frame, still_open);
    let command = part(&ended.command, Kind::Command, still_open);
    let result_ref = part(&ended.result_ref, Kind::ResultRef, still_open);
    let every = format!(
        r#"{{"command":"{command}","execution":"{execution}","frame":"{frame}","result_ref":"{result_ref}","stage":"{stage}"}}"#
    );
    Checksums { execution, stage, frame, command, result_ref, all: blake3_hex(every.as_bytes()) }
}

fn part(chain: &RowChain, kind: Kind, still_open: &[Row]) -> String {
    let mut rows: Vec<_> = still_open.iter().filter(|row| row.kind == kind).collect();
    rows.sort_by_key(|row| row.key);
    let mut text =
        format!("[{PROJECTION_VERSION},[{},\"{}\"],[", chain.length, chain.digest).into_bytes();
    for (index, row) in rows.into_iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&row.json);
    }
    text.extend_from_slice(b"]]");
    blake3_hex(&text)
}
