//! `reader`: reads the log, its payloads and shared memory regions, and folds executions, without Python.

mod check;
mod corpus;
mod error;
mod events;
mod execution;
mod fold;
mod hash;
mod json;
mod locator;
mod payload;
mod projector;
mod shm;
mod time;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::{json, Value};

use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::fold::Folder;
use crate::json::Object;

/// Reads the log, its payloads and shared memory regions, and folds executions, without Python.
///
/// Example: reader check tests/golden
#[derive(Parser)]
#[command(name = "reader", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Verify and fold a corpus; print the checksums of every execution as JSON.
    Fold {
        corpus: PathBuf,
        #[command(flatten)]
        schemas: SchemaFolder,
        /// Print the checksums after every event, one line each.
        #[arg(long)]
        each: bool,
    },
    /// Compare a corpus with its expected checksums; exit code 1 names the first event that differs.
    Check {
        corpus: PathBuf,
        #[command(flatten)]
        schemas: SchemaFolder,
    },
    /// Read and write regions of shared memory.
    #[command(subcommand)]
    Shm(Shm),
    /// Print the known event types, with versions and required routing values, as JSON.
    Types,
}

#[derive(clap::Args)]
struct SchemaFolder {
    /// The folder with ids.yaml; by default avro_schemas/ of the corpus's repository.
    #[arg(long)]
    schemas: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Shm {
    /// Print a region's header, the digest of its rows and of their schema.
    Read {
        /// A name such as /noetl-1000-…, or a path.
        region: String,
    },
    /// Write a region that holds the rows of a JSON file.
    Write {
        /// A name such as /noetl-1000-…, or a path.
        region: String,
        /// A JSON list of objects with the same keys.
        #[arg(long)]
        rows: PathBuf,
        /// How long readers may use it.
        #[arg(long, default_value_t = 60)]
        valid_seconds: u64,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Fold { corpus, schemas, each } => fold(&corpus, schemas, each),
        Command::Check { corpus, schemas } => {
            let (corpus, folder) = open(&corpus, schemas)?;
            let compared = check::check(&corpus, &folder)?;
            let (events, payloads) = (compared.events, compared.payloads);
            print(&json!({"identical": true, "events": events, "payloads": payloads}));
            Ok(())
        }
        Command::Shm(Shm::Read { region }) => read_region(&region),
        Command::Shm(Shm::Write { region, rows, valid_seconds }) => {
            write_region(&region, &rows, valid_seconds)
        }
        Command::Types => {
            print(&types());
            Ok(())
        }
    }
}

fn open(corpus: &std::path::Path, schemas: SchemaFolder) -> Result<(Corpus, Folder)> {
    let schemas = schemas.schemas.unwrap_or_else(|| corpus.join("../../avro_schemas"));
    Ok((Corpus::open(corpus)?, Folder::open(corpus, &schemas)?))
}

fn fold(corpus: &std::path::Path, schemas: SchemaFolder, each: bool) -> Result<()> {
    let (corpus, folder) = open(corpus, schemas)?;
    let mut last = Object::new();
    for log in &corpus.logs {
        folder.fold(&corpus, log, |found| {
            let Some(checksums) = &found.checksums else { return Ok(()) };
            let named = checksums.named().into_iter();
            let named: Object = named.map(|(name, text)| (name.to_owned(), text.into())).collect();
            let one = json!({"root": found.root, "seq": found.seq, "checksums": named});
            if each {
                print(&one);
            }
            last.insert(found.root, one);
            Ok(())
        })?;
    }
    if !each {
        print(&Value::Array(last.into_iter().map(|(_, one)| one).collect()));
    }
    Ok(())
}

fn read_region(region: &str) -> Result<()> {
    let path = shm::region::path_of(region);
    let (header, payload) = shm::region::read(&path)?;
    let rows = payload::arrow_rows::read_rows(&payload).map_err(|why| why.of(path.display()))?;
    print(&json!({
        "path": path,
        "version": shm::header::VERSION,
        "payload_bytes": header.length,
        "sha256": hex::encode(header.sha256),
        "row_count": rows.count,
        "schema_digest": rows.schema_digest,
        "rows": rows.digest,
    }));
    Ok(())
}

fn write_region(region: &str, rows: &std::path::Path, valid_seconds: u64) -> Result<()> {
    let text =
        std::fs::read_to_string(rows).map_err(|why| Error(format!("{}: {why}", rows.display())))?;
    let payload = shm::rows::encode(&json::parse(&text)?).map_err(|why| why.of(rows.display()))?;
    let path = shm::region::path_of(region);
    let header = shm::region::write(&path, &payload, Duration::from_secs(valid_seconds))?;
    print(
        &json!({"path": path, "payload_bytes": header.length, "sha256": hex::encode(header.sha256)}),
    );
    Ok(())
}

fn types() -> Value {
    let described = events::types::TYPES.iter().map(|one| {
        let fields = json!({"version": one.version, "has_node": one.has_node, "required_meta": one.required_meta});
        (one.name.to_owned(), fields)
    });
    Value::Object(described.collect())
}

/// Print a line; a reader that has gone away is not an error.
fn print(value: &Value) {
    let _ = writeln!(std::io::stdout(), "{value}");
}
