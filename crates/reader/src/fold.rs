//! Verification and fold of a corpus, event by event (streams/replay/verified.py).

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;

use crate::corpus::{Corpus, Log, Stored};
use crate::error::{Error, Result};
use crate::events::envelope::Envelope;
use crate::events::model::Event;
use crate::events::schemas::Schemas;
use crate::events::upcast::{upcast, UPCASTERS};
use crate::hash::{blake3_hex, sha256};
use crate::json::{canonical, Object};
use crate::payload::objects::Objects;
use crate::projector::core::View;
use crate::projector::digests::{Checksums, RowChain};

/// What was found of one event.
pub struct Found {
    pub root: String,
    pub seq: i64,
    pub event_id: i64,
    pub event_type: String,
    /// Digest of routing values, context, result and item, after upcasting.
    pub body: String,
    pub checksums: Option<Checksums>,
    pub payloads: RowChain,
}

/// A place in a root: its last `seq`, and the chain there.
#[derive(Clone, Copy, Default)]
struct Link {
    seq: i64,
    chain: [u8; 32],
}

pub struct Folder {
    schemas: Schemas,
    pub objects: Objects,
}

impl Folder {
    pub fn open(corpus: &Path, schemas: &Path) -> Result<Self> {
        Ok(Folder {
            schemas: Schemas::open(schemas)?,
            objects: Objects::new(&corpus.join("payloads")),
        })
    }

    /// Verify and fold the events of a log; `each` receives what was found of every one.
    pub fn fold(
        &self,
        corpus: &Corpus,
        log: &Log,
        mut each: impl FnMut(Found) -> Result<()>,
    ) -> Result<()> {
        let mut links: HashMap<String, Link> = HashMap::new();
        let mut views: HashMap<String, View> = HashMap::new();
        for stored in corpus.stored(log)? {
            let of = |why: Error| {
                why.of(format!("{}: {} seq {}", log.name, stored.root, stored.assigned.seq))
            };
            let link = links.entry(stored.root.clone()).or_default();
            let event = self.verified(&stored, link).map_err(of)?;
            let view = views.entry(stored.root.clone()).or_default();
            let found = self.absorbed(event, view, log.is_folded).map_err(of)?;
            each(found)?;
        }
        Ok(())
    }

    /// Decode an event, and verify its place, its checksum and its link in the chain.
    fn verified(&self, stored: &Stored, link: &mut Link) -> Result<Event> {
        if stored.assigned.seq != link.seq + 1 {
            return Err(Error(format!("the event at seq {} is missing", link.seq + 1)));
        }
        let envelope = Envelope::decode(&stored.envelope, &self.schemas)?;
        if envelope.checksum() != stored.checksum
            || envelope.computed_checksum()? != stored.checksum
        {
            return Err(Error::new("it does not match its checksum"));
        }
        let checksum = hex::decode(&stored.checksum)
            .map_err(|_| Error::new("its checksum is not hexadecimal"))?;
        let chain = sha256(&[&link.chain, &checksum]);
        if hex::encode(chain) != stored.chain {
            return Err(Error::new("its chain does not follow"));
        }
        *link = Link { seq: stored.assigned.seq, chain };
        let event = envelope.event(stored.assigned.clone())?;
        if event.root() != stored.root {
            return Err(Error(format!("it belongs to {}", event.root())));
        }
        Ok(event)
    }

    fn absorbed(&self, event: Event, view: &mut View, is_folded: bool) -> Result<Found> {
        let event = upcast(event, UPCASTERS)?;
        if let Some(reference) = &event.payload_ref {
            self.objects.verify(reference)?;
        }
        let checksums = match is_folded {
            true => {
                view.absorb(&event)?;
                Some(view.checksums()?)
            }
            false => {
                crate::events::typed::typed(&event)?;
                None
            }
        };
        Ok(Found {
            root: event.root(),
            seq: event.seq(),
            event_id: event.event_id,
            body: body(&event),
            event_type: event.event_type,
            checksums,
            payloads: view.payloads.clone(),
        })
    }
}

fn body(event: &Event) -> String {
    let mut fields = Object::new();
    fields.insert("meta".into(), event.meta.clone().into());
    fields.insert("context".into(), event.context.clone());
    fields.insert("result".into(), event.result.clone());
    fields.insert("current_item".into(), event.current_item.clone());
    blake3_hex(&canonical(&json!(fields)))
}
