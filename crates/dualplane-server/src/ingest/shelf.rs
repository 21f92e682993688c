//! Where whole bundles are kept: a folder of this machine, or a bucket of a store that speaks S3.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use dualplane_client as client;
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use ureq::tls::TlsConfig;

use crate::auth::hex;

/// Keeps bundles by the names of their incidents. Everything waits: call it where waiting is allowed.
pub trait Shelf: Send + Sync + fmt::Debug {
    /// Takes a file over. When this answers, the bundle survives whatever happens to this machine that the shelf survives.
    ///
    /// # Errors
    ///
    /// It is not kept; the file is still there.
    fn keep(&self, file: &Path, id: &str) -> io::Result<()>;

    /// Where it lies on this machine now. `sum`: its SHA-256 in hex.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`]: there is none. Anything else: it cannot be had now, or is another.
    fn here(&self, id: &str, sum: &str) -> io::Result<PathBuf>;

    /// Removes it; where there is none, nothing.
    ///
    /// # Errors
    ///
    /// It may still be there.
    fn remove(&self, id: &str) -> io::Result<()>;
}

/// A folder.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// This one, which is made where it is missing.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// The name was checked: it is no path.
    fn path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.bundle"))
    }
}

impl Shelf for Folder {
    fn keep(&self, file: &Path, id: &str) -> io::Result<()> {
        File::open(file)?.sync_all()?;
        fs::rename(file, self.path(id))?;
        File::open(&self.0)?.sync_all()
    }

    fn here(&self, id: &str, _sum: &str) -> io::Result<PathBuf> {
        let path = self.path(id);
        fs::metadata(&path)?;
        Ok(path)
    }

    fn remove(&self, id: &str) -> io::Result<()> {
        match fs::remove_file(self.path(id)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

/// A bucket, as the operator names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `s3://BUCKET/PREFIX`.
    pub url: String,
    /// Where it is reached, where that is not Amazon.
    pub endpoint: Option<String>,
    /// Its region.
    pub region: String,
    /// Certificates that are trusted instead of the usual ones.
    pub ca: Option<PathBuf>,
    /// Bundles may cross a network in the clear.
    pub plain: bool,
}

/// A signed request holds for so long.
const VALID: Duration = Duration::from_secs(600);
/// To connect, and for the whole of a request: a bundle has up to 4 GiB.
const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(300);
/// Bytes of bundles that are kept on this machine, and of one.
const CACHE: u64 = 2 << 30;
const LARGEST: u64 = 4 << 30;
/// Of an answer that is an error.
const SAID: u64 = 4096;

/// A bucket; what was asked for of late lies on this machine as well.
pub struct S3 {
    bucket: Bucket,
    keys: Credentials,
    prefix: String,
    agent: ureq::Agent,
    cache: PathBuf,
    /// One at a time is fetched: several readers of one bundle fetch it once.
    fetching: Mutex<()>,
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3").field("bucket", &self.bucket.base_url().as_str()).finish_non_exhaustive()
    }
}

impl S3 {
    /// The bucket of this place; `cache` is a folder of this machine.
    ///
    /// # Errors
    ///
    /// A sentence: an address that is none, one that would be spoken to in the clear, no keys.
    pub fn open(place: &Place, keys: Option<Credentials>, cache: PathBuf) -> Result<Self, String> {
        let whole = || format!("--bundles {}: write s3://BUCKET or s3://BUCKET/PREFIX", place.url);
        let rest = place.url.strip_prefix("s3://").ok_or_else(whole)?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let good = |c: char| c.is_ascii_alphanumeric() || ".-_/".contains(c);
        if name.len() < 3 || !name.chars().all(|c| good(c) && c != '/') || !prefix.chars().all(good) {
            return Err(whole());
        }
        let keys =
            keys.ok_or("--bundles needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")?;
        let own = format!("https://s3.{}.amazonaws.com", place.region);
        let endpoint = place.endpoint.as_deref().unwrap_or(&own);
        let bad = |e: &dyn fmt::Display| format!("--bundles-endpoint {endpoint}: {e}");
        let uri: http::Uri = endpoint.parse().map_err(|e: http::uri::InvalidUri| bad(&e))?;
        let here = uri.host().is_some_and(client::is_here);
        if uri.scheme_str() == Some("http") && !here && !place.plain {
            return Err(bad(&"it would be spoken to in the clear: use https, or say --bundles-plain"));
        }
        // A name with dots fits no certificate of the store's.
        let style = if place.endpoint.is_none() && !name.contains('.') {
            UrlStyle::VirtualHost
        } else {
            UrlStyle::Path
        };
        let url = endpoint.parse().map_err(|_| bad(&"it is no address"))?;
        let bucket = Bucket::new(url, style, name.to_owned(), place.region.clone()).map_err(|e| bad(&e))?;
        let tls = match &place.ca {
            Some(file) => {
                client::trusting(file).map_err(|e| format!("--bundles-ca {}: {e}", file.display()))?
            }
            None => TlsConfig::default(),
        };
        fs::create_dir_all(&cache).map_err(|e| format!("cannot use {}: {e}", cache.display()))?;
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let agent = client::agent(WHOLE, CONNECT, tls);
        Ok(Self { bucket, keys, prefix, agent, cache, fetching: Mutex::new(()) })
    }

    /// Writes a word, so that keys, rights and address are known to be good before the first bundle comes.
    ///
    /// # Errors
    ///
    /// The store does not take it.
    pub fn probe(&self) -> io::Result<()> {
        let url = self.bucket.put_object(Some(&self.keys), &format!("{}.dualplane", self.prefix)).sign(VALID);
        taken(self.agent.put(url.as_str()).send("dualplane")).map(drop)
    }

    fn key(&self, id: &str) -> String {
        format!("{}{id}.bundle", self.prefix)
    }

    fn cached(&self, id: &str, sum: &str) -> PathBuf {
        self.cache.join(format!("{id}.{}.bundle", sum.get(..16).unwrap_or(sum)))
    }

    fn fetch(&self, id: &str, sum: &str, to: &Path) -> io::Result<()> {
        let key = self.key(id);
        let url = self.bucket.get_object(Some(&self.keys), &key).sign(VALID);
        let answer = taken(self.agent.get(url.as_str()).call())?;
        let mut body = answer.into_body().into_with_config().limit(LARGEST).reader();
        let mut file = tempfile::NamedTempFile::new_in(&self.cache)?;
        let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let n = body.read(&mut buffer)?;
            let read = buffer.get(..n).unwrap_or_default();
            if read.is_empty() {
                break;
            }
            digest.update(read);
            file.write_all(read)?;
        }
        if hex(digest.finish().as_ref()) != sum {
            return Err(io::Error::other(
                "what the store of bundles holds is not what was sent: its SHA-256 is another",
            ));
        }
        self.prune();
        file.persist(to).map_err(|e| e.error)?;
        Ok(())
    }

    /// Makes room: what was asked for longest ago goes.
    fn prune(&self) {
        let all = fs::read_dir(&self.cache).into_iter().flatten().flatten();
        let of = |e: fs::DirEntry| {
            let m = e.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((m.modified().unwrap_or(SystemTime::UNIX_EPOCH), m.len(), e.path()))
        };
        let mut all: Vec<(SystemTime, u64, PathBuf)> = all.filter_map(of).collect();
        all.sort();
        let mut left: u64 = all.iter().map(|(_, n, _)| n).sum();
        for (_, n, path) in all {
            if left <= CACHE {
                return;
            }
            let _ = fs::remove_file(path);
            left = left.saturating_sub(n);
        }
    }
}

impl Shelf for S3 {
    fn keep(&self, file: &Path, id: &str) -> io::Result<()> {
        let key = self.key(id);
        let url = self.bucket.put_object(Some(&self.keys), &key).sign(VALID);
        let body = File::open(file)?;
        taken(self.agent.put(url.as_str()).content_type("application/octet-stream").send(&body))?;
        let _ = fs::remove_file(file);
        Ok(())
    }

    fn here(&self, id: &str, sum: &str) -> io::Result<PathBuf> {
        let path = self.cached(id, sum);
        let _one = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        match File::options().append(true).open(&path) {
            Ok(file) => drop(file.set_modified(SystemTime::now())),
            Err(_) => self.fetch(id, sum, &path)?,
        }
        Ok(path)
    }

    fn remove(&self, id: &str) -> io::Result<()> {
        let key = self.key(id);
        let url = self.bucket.delete_object(Some(&self.keys), &key).sign(VALID);
        match taken(self.agent.delete(url.as_str()).call()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

/// An answer of the store, or what it says against it. The address is signed: it is told to nobody.
fn taken(answer: Result<http::Response<ureq::Body>, ureq::Error>) -> io::Result<http::Response<ureq::Body>> {
    let answer =
        answer.map_err(|e| io::Error::other(format!("the store of bundles does not answer: {e}")))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    if status == http::StatusCode::NOT_FOUND {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the store of bundles does not have it"));
    }
    let mut said = String::new();
    let _ = answer.into_body().into_reader().take(SAID).read_to_string(&mut said);
    let code = said
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"))
        .map_or("", |(code, _)| code);
    let code = dualplane_base::text::printable(code);
    Err(io::Error::other(format!(
        "the store of bundles answered {status} {}",
        dualplane_base::text::shorten(&code, 60)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str, endpoint: Option<&str>) -> Place {
        let region = "eu-west-1".to_owned();
        Place {
            url: url.to_owned(),
            endpoint: endpoint.map(ToOwned::to_owned),
            region,
            ca: None,
            plain: false,
        }
    }

    #[test]
    fn a_bucket_is_named_and_nothing_crosses_a_network_in_the_clear() {
        let home = tempfile::tempdir().unwrap();
        let open = |p: &Place| {
            let keys = Some(Credentials::new("key", "secret"));
            S3::open(p, keys, home.path().join("cache")).map(|s| s.bucket.object_url(&s.key("a")).to_string())
        };
        assert_eq!(
            open(&place("s3://fleet", None)).unwrap(),
            "https://fleet.s3.eu-west-1.amazonaws.com/a.bundle"
        );
        assert_eq!(
            open(&place("s3://my.fleet/x/", None)).unwrap(),
            "https://s3.eu-west-1.amazonaws.com/my.fleet/x/a.bundle"
        );
        let minio = open(&place("s3://fleet/a/b", Some("http://127.0.0.1:9000"))).unwrap();
        assert_eq!(minio, "http://127.0.0.1:9000/fleet/a/b/a.bundle");
        for bad in ["fleet", "s3://", "s3://a", "s3://fleet?x", "s3://fleet/%2e", "https://fleet"] {
            assert!(open(&place(bad, None)).unwrap_err().contains("s3://BUCKET"), "{bad}");
        }
        let mut far = place("s3://fleet", Some("http://minio.storage:9000"));
        assert!(open(&far).unwrap_err().contains("--bundles-plain"));
        far.plain = true;
        assert!(open(&far).is_ok());
        let none = S3::open(&place("s3://fleet", None), None, home.path().join("cache")).unwrap_err();
        assert!(none.contains("AWS_ACCESS_KEY_ID"), "{none}");
    }
}
