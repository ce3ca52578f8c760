//! Avro schemas by the ids in stored records (avro_schemas/ids.yaml).

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use apache_avro::Schema;

use crate::error::{Error, Result};

pub struct Schemas {
    folder: PathBuf,
    files: HashMap<u32, String>,
    /// The schema that events are read as, whichever wrote them.
    pub reader: Schema,
    parsed: RefCell<HashMap<u32, Rc<Schema>>>,
}

impl Schemas {
    pub fn open(folder: &Path) -> Result<Self> {
        let files = pinned(&text_of(&folder.join("ids.yaml"))?)?;
        let reader = parsed(&text_of(&folder.join("Event.avsc"))?)?;
        Ok(Schemas { folder: folder.to_owned(), files, reader, parsed: RefCell::default() })
    }

    /// The schema that a record with this id was written with.
    pub fn writer(&self, id: u32) -> Result<Rc<Schema>> {
        if let Some(found) = self.parsed.borrow().get(&id) {
            return Ok(found.clone());
        }
        let file = self.files.get(&id);
        let file =
            file.ok_or_else(|| Error(format!("schema id {id} is not in avro_schemas/ids.yaml")))?;
        let schema = Rc::new(parsed(&text_of(&self.folder.join(file))?)?);
        self.parsed.borrow_mut().insert(id, schema.clone());
        Ok(schema)
    }
}

/// The file of each id. The ledger is YAML of two levels: ids, and `key: value` below them.
fn pinned(text: &str) -> Result<HashMap<u32, String>> {
    let (mut files, mut id) = (HashMap::new(), None);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            id = Some(name.parse().map_err(|_| Error(format!("ids.yaml: {name:?} is not an id")))?);
        } else if let (Some(id), Some(file)) = (id, line.trim().strip_prefix("file: ")) {
            files.insert(id, file.to_owned());
        }
    }
    Ok(files)
}

fn parsed(text: &str) -> Result<Schema> {
    Schema::parse_str(text).map_err(|why| Error(format!("not an Avro schema: {why}")))
}

fn text_of(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|why| Error(format!("{}: {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_maps_ids_to_files() {
        let found =
            pinned("# a comment\n7:\n  name: Event\n  file: released/Event.1.avsc\n").unwrap();
        assert_eq!(found[&7], "released/Event.1.avsc");
    }
}
