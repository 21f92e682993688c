//! A shelf in a store of objects: Amazon's, Google's, Azure's, or one that speaks as one of them does.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dualplane_base::text::{printable, shorten};
use futures_util::StreamExt;
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::fs::{self, File};
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

use super::cache::Cache;
use super::{Answer, Place, Shelf};
use crate::auth::hex;

/// What is larger goes in parts of this, one after another: an upload takes twice this of memory, whatever its length.
const PART: usize = 8 << 20;
/// A bundle has no more.
const LARGEST: u64 = 4 << 30;
/// Of what a store says against something.
const SAID: usize = 200;

/// A bucket; what was asked for of late lies on this machine as well.
#[derive(Debug)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    cache: Cache,
    /// One at a time is fetched: several readers of one bundle fetch it once.
    fetching: Mutex<()>,
}

impl Bucket {
    /// The bucket of this place, with the keys that these variables name; `cache` is a folder of this machine.
    ///
    /// # Errors
    ///
    /// A sentence: an address that is none, one that would be spoken to in the clear, keys that are none.
    pub fn open(place: &Place, env: &[(String, String)], cache: PathBuf) -> Result<Self, String> {
        let (store, prefix) = place.open(env)?;
        let no_cache = |e: io::Error| format!("cannot use {}: {e}", cache.display());
        let cache = Cache::open(cache.clone()).map_err(no_cache)?;
        Ok(Self { store, prefix, cache, fetching: Mutex::new(()) })
    }

    /// Writes a word, so that keys, rights and address are known to be good before the first bundle comes.
    ///
    /// # Errors
    ///
    /// The store does not take it.
    pub async fn probe(&self) -> io::Result<()> {
        let put = self.store.put(&self.at(".dualplane")?, "dualplane".into()).await;
        put.map(drop).map_err(|e| error(&e))
    }

    /// As it is written: the names of incidents and the prefix were checked, and what other versions have kept is found.
    fn at(&self, name: &str) -> io::Result<Key> {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        Key::parse(format!("{}{slash}{name}", self.prefix)).map_err(io::Error::other)
    }

    fn key(&self, id: &str) -> io::Result<Key> {
        self.at(&format!("{id}.bundle"))
    }

    async fn put(&self, file: &Path, key: &Key) -> io::Result<()> {
        let mut file = File::open(file).await?;
        let first = part(&mut file).await?;
        if first.len() < PART {
            return self.store.put(key, first.into()).await.map(drop).map_err(|e| error(&e));
        }
        let mut upload = self.store.put_multipart(key).await.map_err(|e| error(&e))?;
        let sent = parts(&mut *upload, first, file).await;
        if sent.is_err() {
            // What is left of it costs until it is said to be nothing; a rule of the bucket's life cycle removes what stays.
            let _ = upload.abort().await;
        }
        sent
    }

    async fn fetch(&self, id: &str, sum: &str, to: &Path) -> io::Result<()> {
        let got = self.store.get(&self.key(id)?).await.map_err(|e| error(&e))?;
        if got.meta.size > LARGEST {
            return Err(io::Error::other("what the store of bundles holds is larger than a bundle"));
        }
        let file = tempfile::NamedTempFile::new_in(self.cache.folder())?;
        let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
        let mut pieces = got.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|e| error(&e))?;
            digest.update(&piece);
            // A piece is what came at once, some KiB: the disk's cache takes it.
            file.as_file().write_all(&piece)?;
        }
        if hex(digest.finish().as_ref()) != sum {
            return Err(io::Error::other(
                "what the store of bundles holds is not what was sent: its SHA-256 is another",
            ));
        }
        self.cache.prune();
        file.persist(to).map_err(|e| e.error)?;
        Ok(())
    }
}

/// The next part of a file; less than a part: its end.
async fn part(file: &mut File) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    file.take(PART as u64).read_to_end(&mut out).await?;
    Ok(out)
}

async fn parts(upload: &mut dyn MultipartUpload, first: Vec<u8>, mut file: File) -> io::Result<()> {
    let mut next = first;
    while !next.is_empty() {
        upload.put_part(PutPayload::from(next)).await.map_err(|e| error(&e))?;
        next = part(&mut file).await?;
    }
    upload.complete().await.map(drop).map_err(|e| error(&e))
}

impl Shelf for Bucket {
    fn keep<'a>(&'a self, file: &'a Path, id: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            self.put(file, &self.key(id)?).await?;
            let _ = fs::remove_file(file).await;
            Ok(())
        })
    }

    fn here<'a>(&'a self, id: &'a str, sum: &'a str) -> Answer<'a, PathBuf> {
        Box::pin(async move {
            let path = self.cache.path(id, sum);
            let _one = self.fetching.lock().await;
            if !self.cache.has(&path) {
                self.fetch(id, sum, &path).await?;
            }
            Ok(path)
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            match self.store.delete(&self.key(id)?).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(e) => Err(error(&e)),
            }
        })
    }
}

fn error(e: &object_store::Error) -> io::Error {
    match e {
        object_store::Error::NotFound { .. } => {
            io::Error::new(io::ErrorKind::NotFound, "the store of bundles does not have it")
        }
        e => io::Error::other(format!("the store of bundles: {}", said(e))),
    }
}

/// What a store says against something: its status and code, or why it was not reached. An address may be signed, so none is told.
pub(super) fn said(e: &object_store::Error) -> String {
    let mut chain = vec![e.to_string()];
    let mut cause = e.source();
    while let Some(e) = cause {
        chain.push(e.to_string());
        cause = e.source();
    }
    let whole = chain.first().map_or("", String::as_str);
    // "Error performing PUT https://… in 3ms, after 3 retries - Server returned non-2xx status code: 503 …: <Error><Code>…"
    let text = whole.split_once(" - ").map_or(whole, |(_, why)| why);
    let tag = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once("</").map(|(word, _)| word.to_owned())
    };
    let deepest = chain.last().filter(|last| !whole.contains(last.as_str())).cloned();
    let more = tag("Code").or(deepest).map_or_else(String::new, |m| format!(": {m}"));
    let text = text.split('<').next().unwrap_or(text).trim_end_matches([' ', ':', '\n']);
    let words = text.split(' ').map(|w| if w.contains("://") { "(address)" } else { w });
    let words: Vec<&str> = words.collect();
    shorten(&printable(&format!("{}{more}", words.join(" "))), SAID).into_owned()
}
