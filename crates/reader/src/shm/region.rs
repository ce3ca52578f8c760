//! A region: a file in the shared memory folder, written once (streams/payload/shm/region.py, files.py).

use std::fs::{remove_file, rename, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};
use crate::hash::sha256;
use crate::shm::header::{Header, SIZE};

const FOLDER: &str = "/dev/shm";

/// The file of a region's name such as `/noetl-…`; anything else is a path.
pub fn path_of(name: &str) -> PathBuf {
    let is_name = name.strip_prefix("/noetl-").is_some_and(|rest| !rest.contains('/'));
    if is_name {
        PathBuf::from(format!("{FOLDER}{name}"))
    } else {
        PathBuf::from(name)
    }
}

/// Read a region. Unlike a worker, which compares digests only, this hashes the payload.
pub fn read(path: &Path) -> Result<(Header, Vec<u8>)> {
    let mut data = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut data))
        .map_err(|why| of(path, why))?;
    let header =
        Header::unpack(data.get(..SIZE).unwrap_or(&data)).map_err(|why| why.of(path.display()))?;
    let payload = data.split_off(SIZE);
    if payload.len() as u64 != header.length {
        return Err(of(
            path,
            format!("{} bytes of payload, the header says {}", payload.len(), header.length),
        ));
    }
    if sha256(&[&payload]) != header.sha256 {
        return Err(of(path, "the payload does not match the digest in the header"));
    }
    Ok((header, payload))
}

/// Write a region under a temporary name, the header last, and rename it; its modification time is its expiry.
pub fn write(path: &Path, payload: &[u8], valid_for: Duration) -> Result<Header> {
    let header = Header { length: payload.len() as u64, sha256: sha256(&[payload]) };
    let passing = PathBuf::from(format!("{}.new-{}", path.display(), std::process::id()));
    let outcome = fill(&passing, &header, payload, SystemTime::now() + valid_for)
        .and_then(|()| rename(&passing, path));
    if let Err(why) = outcome {
        remove_file(&passing).ok();
        return Err(of(path, why));
    }
    Ok(header)
}

fn fill(path: &Path, header: &Header, payload: &[u8], until: SystemTime) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_len((SIZE + payload.len()) as u64)?;
    file.write_all_at(payload, SIZE as u64)?;
    file.write_all_at(&header.pack(), 0)?;
    file.set_modified(until)
}

fn of(path: &Path, why: impl std::fmt::Display) -> Error {
    Error(format!("{}: {why}", path.display()))
}
